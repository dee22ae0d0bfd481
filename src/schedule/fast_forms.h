// Operators in their faster forms.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// Named rewrite `fast_forms` (docs/architecture.md): exp(t - max t), sigmoid, and erf or tanh
// inside GELU take their faster forms, whose bounds stand in docs/numerics.md.
void mark_fast_forms(StageGraph* graph);

// A load of a row's sum of fast exponentials, softmax's: at least about 1, and a number. A product
// with its reciprocal is good enough; any other divisor wants a correction.
bool is_sum_of_exponentials(const StageGraph& graph, const Stage& stage, const Node& node);

}  // namespace heddle::schedule
