// A fusion of fusions: its parts are kernels already, and become one kernel, in as many phases as
// they wait for one another. Between them stand views and elements of tuples, no more.
#pragma once

#include "hlo/module.h"

namespace heddle::hlo {

bool is_composite(const Computation& computation);

}  // namespace heddle::hlo
