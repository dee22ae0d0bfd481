// The maps after a product that follow its tiles.
#pragma once

#include <vector>

#include "base/decision.h"
#include "stage/stage_graph.h"

namespace heddle::stage {

// The digits of every map of an epilogue, as expressions over the dot's out digits, by StageId.
// `joined`: the dot first, then the maps. No: a map's elements do not correspond one to one to the
// dot's.
Decision invert_epilogue(const StageGraph& graph, const std::vector<StageId>& joined,
                         std::vector<std::vector<index::Expr>>* digits);

}  // namespace heddle::stage
