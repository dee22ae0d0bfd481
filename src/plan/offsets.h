// Offsets of blocks in one arena: blocks whose lifetimes meet must not share bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::plan {

struct Block {
  int64_t bytes = 0;            // a multiple of the alignment
  int64_t first = 0, last = 0;  // steps, inclusive
};

struct Offsets {
  std::vector<int64_t> offsets;  // by block
  int64_t height_bytes = 0;      // of the arena
  const char* order = "";        // the heuristic that won
};

// Most bytes live at one step: no arena is lower.
int64_t lower_bound_bytes(const std::vector<Block>& blocks);

// Greedy, over several orders of the blocks and two choices of gap; the lowest arena wins, of
// equals the first tried. Ends where the lower bound is met.
Offsets assign_offsets(const std::vector<Block>& blocks);

}  // namespace heddle::plan
