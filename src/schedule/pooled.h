// Pools behind a convolution, in its kernel (stages.md §4.9): a task computes the lines of the
// convolution that a strip of pooled lines sees into scratch, pools them, and stores only what
// comes out. Lines that two strips see are computed by both of their tasks; what that costs is
// weighed against what is no longer written and read (PooledTime).
#pragma once

#include <string>
#include <vector>

#include "schedule/gemm.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// Codes: `gemm-epilogue` (a map behind the convolution does not follow its tiles),
// `chain-consumers` (its result has other readers, and windows overlap or leave lines out),
// `pool-window` (the window is not one over lines and columns, with the channels in lanes),
// `chain-residence` (the lines of one pooled line do not fit).
Pooled match_pooled(const StageGraph& graph, StageId conv, const GemmShape& shape,
                    const target::Target& target);
// Elements between neighbouring columns of the lines in scratch, of `columns` features.
int64_t pooled_pitch(int64_t columns, int lanes);
// What the schedule holds of the convolution's lines in a task, and of its features.
struct PooledStrip {
  int64_t lines = 1, width = 0;
};
PooledStrip pooled_strip(const PlacedFusion& placed);

// What the two take, on all cores of the target, but for what is the same either way. Of these and
// the rest: `placed` is_pooled().
struct PooledTime {
  double together_ns = 0, apart_ns = 0;
};
PooledTime pooled_time(const PlacedFusion& placed, const target::Target& target);
// The key of a tuning record that says `chain` or `apart` (chain_cost.h).
std::string pooled_key(const PlacedFusion& placed);

}  // namespace heddle::schedule
