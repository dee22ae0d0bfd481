// place: a fusion becomes a stage graph with a legal schedule, or is refused with a reason. The
// explorer (fuse) and the code generator (stitch) ask this one function (docs/architecture.md).
#pragma once

#include "schedule/footprint.h"
#include "schedule/schedule.h"
#include "target/target.h"

namespace heddle::schedule {

struct PlacedFusion {
  StageGraph graph;  // after digits were merged and reductions split
  Schedule schedule;
  Placement placement;
  Decision decision = Decision::yes();
};

// Placed, by the GEMM family.
bool is_gemm(const PlacedFusion& placed);
// How many of its rows are windows (windows.h) of which all that hangs on them, too, is read and
// written along the lanes.
int count_windows(const PlacedFusion& placed);
// Several products in a row, or a product and rows (chain.h); is_gemm() too. The schedule's first
// nodes are its products.
bool is_chain(const PlacedFusion& placed);
// Placed, by any template family.
bool is_template(const PlacedFusion& placed);

// Codes: those of can_stage, build_stage_graph and place_values; `unmatched-output` (outputs
// without common loops), `gemm-epilogue` (what hangs on a dot does not follow its tiles),
// `one-task` (all work would fall to one task), those of place_chain.
// `fast_forms`: false under --numerics=strict.
PlacedFusion place(const hlo::Computation& fusion, const target::Target& target,
                   bool fast_forms = true);

}  // namespace heddle::schedule
