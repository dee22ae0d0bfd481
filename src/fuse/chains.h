// Private to fuse: groups with a product each that follow one another, and groups of rows before,
// between and behind them, become one (a chain, schedule/chain.h) where that is legal and predicted,
// or measured, to pay.
#pragma once

#include <memory>
#include <vector>

#include "fuse/group_order.h"
#include "fuse/groups.h"

namespace heddle::fuse {

// Groups that were joined into others are left without members. Refusals: the codes of
// schedule::match_chain and place_chain, `chain-compute-bound`, and `cycle`. `any`: also those that are
// predicted to lose a little, whatever was measured.
void merge_chains(const std::vector<std::unique_ptr<Group>>& groups, GroupOrder::GroupsOf* group_of,
                  const std::unordered_map<const Instr*, size_t>& index,
                  const target::Target& target, bool any, std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
