// Private to fuse: groups with a product each that follow one another, and groups of rows before,
// between and behind them, become one (a chain, schedule/chain.h) where that is legal and
// predicted, or measured, to pay.
#pragma once

#include "fuse/group_merger.h"

namespace heddle::fuse {

// Groups that were joined into others are left without members. Refusals: the codes of
// schedule::match_chain and place_chain, `chain-compute-bound`, and `cycle`. `any`: also those that
// are predicted to lose a little, whatever was measured.
void merge_chains(const Grouped& grouped, bool any);

}  // namespace heddle::fuse
