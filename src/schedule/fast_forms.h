// Marks operators that may use faster, less exact forms.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// Named rewrite `fast_forms` (docs/architecture.md): exp(t - max t), sigmoid, and erf or tanh
// inside GELU use faster forms, with error bounds given in docs/numerics.md.
void mark_fast_forms(StageGraph* graph);

// Whether `node` loads a row's sum of fast exponentials (softmax), which is a number of at least
// about 1. Multiplying by its reciprocal is accurate enough; any other divisor needs a correction.
bool is_sum_of_exponentials(const StageGraph& graph, const Stage& stage, const Node& node);

}  // namespace heddle::schedule
