// Offsets of blocks in one arena: blocks with overlapping lifetimes must not share bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace heddle::arena {

struct Block {
  int64_t bytes = 0;            // a multiple of the alignment
  int64_t first = 0, last = 0;  // steps, inclusive
};

// By pair of blocks: they may be live at the same time. Empty: if their steps overlap.
using Conflicts = std::vector<std::vector<bool>>;
// Sets of blocks that conflict pairwise.
using Cliques = std::vector<std::vector<int>>;

struct Offsets {
  std::vector<int64_t> offsets;  // by block
  int64_t height_bytes = 0;      // size of the arena
  const char* found_by = "";     // the heuristic that won, or "exact search"
  bool optimal = false;          // no arena is lower: it equals the lower bound, or was proved
};

// Work limit of the exact search, in visits of blocks and sections: about 0.2 s.
inline constexpr int64_t kSearchWork = 100'000'000;
inline constexpr int64_t kSearchWorkUnderLimit = 5'000'000'000;  // if a limit is not met

// A lower bound of the arena's size: the most bytes live at one step, or, if conflicts are given
// (these include all overlaps of steps), the most bytes of a clique that was found.
int64_t lower_bound_bytes(const std::vector<Block>& blocks, const Conflicts& conflicts = {});

// Cliques with at least one conflict beyond overlapping steps, those with the most bytes first: for
// each such conflict, the clique that results from adding blocks greedily, largest first.
Cliques find_cliques(const std::vector<Block>& blocks, const Conflicts& conflicts);

// First a portfolio: greedy, with several orders of the blocks and two choices of gap; the lowest
// arena wins, among equals the first. If that is above the lower bound, exact search
// (fit_offsets.h) for a lower one within `work`.
Offsets assign_offsets(const std::vector<Block>& blocks, int64_t work = kSearchWork,
                       const Conflicts& conflicts = {});

// Checks a plan by a sweep over the steps that shares no code with the planner: every block is in
// [0, height), and no two that are live at one step, or in conflict, share bytes.
Status check_offsets(const std::vector<Block>& blocks, const Offsets& plan,
                     const Conflicts& conflicts = {});

}  // namespace heddle::arena
