// Private to fuse: a convolution moves into the kernel of the pool that reads it
// (schedule/pooled.h) where that is predicted, or measured, to pay.
#pragma once

#include <memory>
#include <vector>

#include "fuse/group_order.h"
#include "fuse/groups.h"

namespace heddle::fuse {

// Groups that were joined into others are left without members. Refusals: the codes of
// schedule::match_pooled and place_pooled, and `pool-recompute`. `any`: also those that are
// predicted to lose a little, whatever was measured.
void merge_pools(const std::vector<std::unique_ptr<Group>>& groups, GroupOrder::GroupsOf* group_of,
                 const std::unordered_map<const Instr*, size_t>& index,
                 const target::Target& target, bool any, std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
