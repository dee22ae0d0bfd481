// Private to schedule and stitch: maps whose input is contiguous along another digit than their
// output (a transpose and its epilogue). Squares of lanes by lanes are read along the first digit,
// transposed in registers and written along the second, so that both sides move whole vectors
// (stages.md §4.5).
#pragma once

#include <optional>

#include "schedule/stage_names.h"

namespace heddle::schedule {

// None: the stage is no map of this kind, or too small to gain. The row of a matched stage has an
// unrolled loop over `along` around its lanes.
std::optional<Turn> match_turn(const StageGraph& graph, const Stage& stage,
                               const target::Target& target);
// Places a single stage: tasks over the other digits and strips of `along`, squares inside.
PlacedFusion place_turn(StageGraph graph, const Turn& form, const target::Target& target);

}  // namespace heddle::schedule
