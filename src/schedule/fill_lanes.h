// Maps whose rows are not a whole number of vectors, or shorter than one.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// If an input has one element per row, merges as many rows as fill whole vectors: 256x36 becomes
// 64x144. If an input's rows are short and not adjacent (three channels of four), merges them all:
// 224x4 becomes 896, whose lanes know their rows. Applies to graphs of a single map; others are
// unchanged.
void fill_lanes(StageGraph* graph, int lanes);

}  // namespace heddle::schedule
