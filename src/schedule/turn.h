// Private to schedule, and stitch: maps whose input runs along another digit than the output (a
// transpose, and what hangs on it). Squares of lanes by lanes are read along the one, turned in
// registers and written along the other, so that both sides move whole vectors (stages.md §4.5).
#pragma once

#include <optional>

#include "schedule/placed.h"

namespace heddle::schedule {

struct TurnForm {
  int across = -1;  // the out digit along which the output is contiguous: the lanes of the store
  int along = -1;   // the out digit along which the load is contiguous
  int load = -1;    // which load is turned
};

// Nothing: the stage is no map of this kind, or too small to gain. A row of such a stage has an
// unrolled loop over `along` around its lanes.
std::optional<TurnForm> match_turn(const StageGraph& graph, const Stage& stage,
                                   const target::Target& target);
// Of a stage alone: tasks over the other digits, and strips of `along`; squares inside.
PlacedFusion place_turn(StageGraph graph, const TurnForm& form, const target::Target& target);

}  // namespace heddle::schedule
