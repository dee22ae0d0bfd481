// Private to fuse: a loop's counters are made beside the rest of its step.
#pragma once

#include <functional>

#include "fuse/group_merger.h"

namespace heddle::fuse {

// Groups of scalars only move into one of the others, but for those that `stays` names.
void merge_scalars(const Grouped& grouped, const std::function<bool(const Group&)>& stays);

}  // namespace heddle::fuse
