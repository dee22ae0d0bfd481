// Numbers of rows that were computed several times.
#pragma once

#include "hlo/module.h"

namespace heddle::opt {

// Calls of heddle.first_rows (hlo/symbol.h) that count equally many rows have one value that says
// it: only so are their dimensions one.
void share_equal_counts(hlo::Computation* computation);

}  // namespace heddle::opt
