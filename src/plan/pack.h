// Packing of shape arithmetic: small integer operators that the host does, one behind the other,
// become one host call.
#pragma once

#include "plan/flow.h"

namespace heddle::plan {

// Of a partitioned flow, before memory is shared.
void pack_shape_arithmetic(Flow& flow);

}  // namespace heddle::plan
