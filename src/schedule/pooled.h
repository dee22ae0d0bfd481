// Pools after a convolution, fused into its kernel (stages.md §4.9): a task computes into scratch
// the convolution's lines that a strip of pooled lines reads, pools them, and stores only the
// result. Lines that two strips read are computed by both tasks; that cost is weighed against the
// saved memory traffic (PooledTime).
#pragma once

#include <string>
#include <vector>

#include "schedule/gemm.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// Codes: `gemm-epilogue` (a map after the convolution does not follow its tiles), `chain-consumers`
// (its result has other readers, and windows overlap or leave lines out), `pool-window` (not a
// window over lines and columns with the channels in lanes), `chain-residence` (the lines of one
// pooled line do not fit).
Pooled match_pooled(const StageGraph& graph, StageId conv, const GemmShape& shape,
                    const target::Target& target);
// Elements from one column to the next of the lines in scratch, for `columns` features.
int64_t pooled_pitch(int64_t columns, int lanes);
// The convolution's lines, and its features, that one task computes.
struct PooledStrip {
  int64_t lines = 1, width = 0;
};
PooledStrip pooled_strip(const PlacedFusion& placed);

// The time of the fused and of the separate kernels on all cores of the target, without the parts
// that are equal. All functions of a `placed` here require is_pooled().
struct PooledTime {
  double together_ns = 0, apart_ns = 0;
};
PooledTime pooled_time(const PlacedFusion& placed, const target::Target& target);
// The key of a tuning record that says `chain` or `apart` (chain_tuning.h).
std::string pooled_key(const PlacedFusion& placed);

}  // namespace heddle::schedule
