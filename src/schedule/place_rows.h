// Private to schedule: fusions without a dot or convolution of a template family, as rows of joined
// stages under task loops.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// `striped`: stages whose out digit 0 is a strip, placed in a loop over it (cascade.cc).
// `rows`: rows per task along its last digit, if its extent divides by that.
PlacedFusion place_rows(StageGraph graph, const target::Target& target,
                        std::vector<StageId> striped = {}, int64_t rows = 1);

}  // namespace heddle::schedule
