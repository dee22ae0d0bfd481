// Offsets of blocks in one arena: blocks whose lifetimes meet must not share bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace heddle::arena {

struct Block {
  int64_t bytes = 0;            // a multiple of the alignment
  int64_t first = 0, last = 0;  // steps, inclusive
};

// By block and block: they may be live at once. Empty: where their steps meet.
using Conflicts = std::vector<std::vector<bool>>;
// Sets of blocks, each in conflict with each.
using Cliques = std::vector<std::vector<int>>;

struct Offsets {
  std::vector<int64_t> offsets;  // by block
  int64_t height_bytes = 0;      // of the arena
  const char* found_by = "";     // the heuristic that won, or "exact search"
  bool optimal = false;          // no arena is lower: at the lower bound, or proved
};

// Visits of blocks and sections that the exact search may spend: about 0.2 s.
inline constexpr int64_t kSearchWork = 100'000'000;
inline constexpr int64_t kSearchWorkUnderLimit = 5'000'000'000;  // where a limit is not met

// Most bytes live at one step, or, where conflicts are given (of all that meet at a step, and
// more), most bytes of a set found that are all in conflict: no arena is lower.
int64_t lower_bound_bytes(const std::vector<Block>& blocks, const Conflicts& conflicts = {});

// Sets with at least one conflict beyond the steps, those of most bytes first: of each such
// conflict the set that takes up, from the largest block down, what is in conflict with all of it.
Cliques find_cliques(const std::vector<Block>& blocks, const Conflicts& conflicts);

// A portfolio first: greedy, over several orders of the blocks and two choices of gap; the lowest
// arena wins, of equals the first tried. Where that is above the lower bound, exact search
// (fit_offsets.h) for a lower one within `work`.
Offsets assign_offsets(const std::vector<Block>& blocks, int64_t work = kSearchWork,
                       const Conflicts& conflicts = {});

// Checks a plan by a sweep over the steps, with no code of what makes it: every block lies in
// [0, height), and no two that are live at one step, or in conflict, share bytes.
Status check_offsets(const std::vector<Block>& blocks, const Offsets& plan,
                     const Conflicts& conflicts = {});

}  // namespace heddle::arena
