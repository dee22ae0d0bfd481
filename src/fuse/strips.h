// Private to fuse: a loop is cut along its batch into strips that do not meet.
#pragma once

#include <vector>

#include "fuse/batch_flow.h"
#include "target/target.h"

namespace heddle::fuse {

// A loop over strips around the steps of each (hlo::set_strips). Its state: the number of the
// strip, its first row, then what the loop's state was; of what is summed up, an array of the
// strips' sums.
struct Strips {
  Instr* loop = nullptr;
  std::vector<LeafUse> uses;  // by leaf of the loop as it was
  double step_ns = 0;         // predicted, of all strips
};
inline constexpr int64_t kStripLeaves = 2;  // in front of the loop's own

// `loop` has covered steps, its own copies of its computations, and known trips; `read`: leaves
// that are read behind it. Builds the strips beside it. No (codes `loop-rows`, `loop-state`,
// `loop-work`): its computations are spoiled.
Decision cut_into_strips(Instr* loop, const std::vector<int64_t>& read,
                         const target::Target& target, Strips* strips);

// The sum over the strips of a summed leaf, and what it was before: a fusion in `parent`.
Instr* add_strips(Computation* parent, Instr* sums, Instr* before);

}  // namespace heddle::fuse
