// Private to schedule: vector accesses, of several adjacent elements per thread of a GPU.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// Sets Row::width where the rows of a group allow the same width: their lanes run along contiguous
// memory, aligned to the width, and their extents divide by it. False if nothing changed.
bool widen_rows(PlacedFusion* placed);

}  // namespace heddle::schedule
