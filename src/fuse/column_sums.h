// Private to fuse: reductions over the rows of a product that another kernel would read again
// become a part of the product's kernel (schedule/column_sums.h).
#pragma once

#include <memory>
#include <vector>

#include "fuse/group_order.h"
#include "fuse/groups.h"

namespace heddle::fuse {

// Groups that were joined into others are left without members.
void merge_column_sums(const std::vector<std::unique_ptr<Group>>& groups,
                       GroupOrder::GroupsOf* group_of,
                       const std::unordered_map<const Instr*, size_t>& index,
                       const target::Target& target, std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
