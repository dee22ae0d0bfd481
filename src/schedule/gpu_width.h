// Private to schedule: elements side by side that a thread of a GPU takes at once.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// Sets Row::width where all rows of a phase allow the same: their lanes run along what lies side by
// side in memory, at places that are aligned for it, and divide. False: nothing changed.
bool widen_rows(PlacedFusion* placed);

}  // namespace heddle::schedule
