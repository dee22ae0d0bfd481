// Maps whose rows fill no whole number of vectors.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// Where some input has one element a row (256x36), as many rows as fill whole vectors become one:
// 64x144. Graphs of one map only; others stay as they are.
void fill_lanes(StageGraph* graph, int lanes);

}  // namespace heddle::schedule
