// Private to fuse: a transpose of a product's result moves into the product's kernel, which stores
// it in that order (a network whose result has its features before its pixels, say).
#pragma once

#include "fuse/group_merger.h"

namespace heddle::fuse {

// Groups that were joined into others are left without members. Refusals: the codes of
// schedule::place, and `across-lanes` where the stores would take longer than a kernel that turns.
void merge_turns(const Grouped& grouped);

}  // namespace heddle::fuse
