// Exact search: do blocks fit into an arena of a given size? In the manner of MiniMalloc (Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023).
#pragma once

#include <cstdint>
#include <vector>

#include "arena/offsets.h"

namespace heddle::arena {

enum class Fit { fits, never, unknown };  // unknown: the work ran out

struct FitResult {
  Fit fit = Fit::unknown;
  std::vector<int64_t> offsets;  // by block, where they fit
  int64_t work = 0;              // done, in visits of blocks and sections
};

// Complete but for `work`: `never` is a proof. The same blocks give the same answer. `conflicts`:
// as in offsets.h, of blocks that meet at no step, too. `cliques`: sets of blocks of which each is
// in conflict with each; no arena is lower than one of them, which cuts the search short.
FitResult fit_offsets(const std::vector<Block>& blocks, int64_t capacity_bytes, int64_t work,
                      const Conflicts& conflicts = {}, const Cliques& cliques = {});

}  // namespace heddle::arena
