// Private to fuse: cuts a loop along its batch into independent strips.
#pragma once

#include <vector>

#include "fuse/batch_flow.h"
#include "target/target.h"

namespace heddle::fuse {

// A loop over strips around the steps of each (hlo::set_strips). Its state: the number of the
// strip, its first row, then the state of the original loop; of a summed leaf, an array of the
// strips' sums.
struct Strips {
  Instr* loop = nullptr;
  std::vector<LeafUse> uses;  // by leaf of the original loop
  double step_ns = 0;         // predicted, of all strips
};
inline constexpr int64_t kStripLeaves = 2;  // before the loop's leaves

// `loop` has covered steps, computations that nothing else calls, and a known trip count; `read`:
// leaves that are read after it. Builds the strips beside it. No (codes `loop-rows`, `loop-state`,
// `loop-work`): its computations are no longer usable.
Decision cut_into_strips(Instr* loop, const std::vector<int64_t>& read,
                         const target::Target& target, Strips* strips);

// Adds a fusion to `parent`: the sum over the strips of a summed leaf, and of its value before the
// loop.
Instr* add_strips(Computation* parent, Instr* sums, Instr* before);

}  // namespace heddle::fuse
