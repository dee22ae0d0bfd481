// Numbers of rows that were computed several times.
#pragma once

#include "hlo/dim_classes.h"
#include "hlo/module.h"

namespace heddle::opt {

// Calls of heddle.first_rows (hlo/symbol.h) that count equally many rows have one value that says
// it: only so are their dimensions one. Sizes of dimensions of one class are equal, where classes
// are given.
void share_equal_counts(hlo::Computation* computation, const hlo::DimClasses* classes = nullptr);

}  // namespace heddle::opt
