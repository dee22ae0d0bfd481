// Which of the faster quotients is meant (mark_fast_forms in stage_graph.h).
#pragma once

#include "schedule/stage_graph.h"

namespace heddle::schedule {

// A load of a row's sum of fast exponentials, softmax's: at least about 1, and a number. A product
// with its reciprocal is good enough; any other divisor wants a correction.
bool is_sum_of_exponentials(const StageGraph& graph, const Stage& stage, const Node& node);

}  // namespace heddle::schedule
