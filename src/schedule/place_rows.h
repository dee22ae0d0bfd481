// Private to schedule: fusions without a dot or convolution of a template family, as rows of joined
// stages under task loops.
#pragma once

#include "schedule/place.h"

namespace heddle::schedule {

PlacedFusion place_rows(StageGraph graph, const target::Target& target);

}  // namespace heddle::schedule
