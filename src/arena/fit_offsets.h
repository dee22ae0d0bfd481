// Exact search whether blocks fit into an arena of a given size, after MiniMalloc (Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023).
#pragma once

#include <cstdint>
#include <vector>

#include "arena/offsets.h"

namespace heddle::arena {

enum class Fit { fits, never, unknown };  // unknown: the work limit was reached

struct FitResult {
  Fit fit = Fit::unknown;
  std::vector<int64_t> offsets;  // by block, if they fit
  int64_t work = 0;              // spent, in visits of blocks and sections
};

// Complete up to `work`: `never` is a proof. Deterministic. `conflicts`: as in offsets.h, including
// those of blocks whose steps do not overlap. `cliques`: sets of blocks that conflict pairwise; no
// arena is smaller than the bytes of one, which prunes the search.
FitResult fit_offsets(const std::vector<Block>& blocks, int64_t capacity_bytes, int64_t work,
                      const Conflicts& conflicts = {}, const Cliques& cliques = {});

}  // namespace heddle::arena
