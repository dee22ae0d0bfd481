// Packing of shape arithmetic: consecutive small integer operators on the host become one host
// call.
#pragma once

#include "plan/flow.h"

namespace heddle::plan {

// For a partitioned flow, before memory is shared.
void pack_shape_arithmetic(Flow& flow);

}  // namespace heddle::plan
