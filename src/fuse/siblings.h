// Private to fuse: groups that read the same arrays, or one the other's results, become one kernel
// where that moves less (gradients of input, scale and shift; a loss and its gradient).
#pragma once

#include <functional>

#include "fuse/group_merger.h"

namespace heddle::fuse {

// `stays`: groups that are left alone. Emptied groups are part of another one. A refusal that was
// made because it does not pay has the code `price`.
void merge_siblings(const Grouped& grouped, const std::function<bool(const Group&)>& stays);

}  // namespace heddle::fuse
