// Private to fuse: a convolution moves into the kernel of the pool that reads it
// (schedule/pooled.h) where that is predicted, or measured, to pay.
#pragma once

#include "fuse/group_merger.h"

namespace heddle::fuse {

// Groups that were joined into others are left without members. Refusals: the codes of
// schedule::match_pooled and place_pooled, and `pool-recompute`. `any`: also those that are
// predicted to lose a little, whatever was measured.
void merge_pools(const Grouped& grouped, bool any);

}  // namespace heddle::fuse
