// Private to fuse: groups that read the same arrays, or one the other's results, become one kernel
// where that moves less (gradients of input, scale and shift; a loss and its gradient).
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fuse/group_order.h"
#include "fuse/groups.h"

namespace heddle::fuse {

// `stays`: groups that are left alone. Emptied groups are part of another one. A refusal that was
// made because it does not pay has the code `price`.
void merge_siblings(const std::vector<std::unique_ptr<Group>>& groups,
                    GroupOrder::GroupsOf* group_of,
                    const std::unordered_map<const Instr*, size_t>& index,
                    const target::Target& target, const std::function<bool(const Group&)>& stays,
                    std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
