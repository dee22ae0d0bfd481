// Private to schedule: fusions without a dot or convolution of a template family, as rows of joined
// stages under task loops.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// `striped`: stages with a strip as their out digit 0, which stand in a loop over it (cascade.cc).
// `rows`: of a task, along its last digit, where that divides.
PlacedFusion place_rows(StageGraph graph, const target::Target& target,
                        std::vector<StageId> striped = {}, int64_t rows = 1);

}  // namespace heddle::schedule
