// Evaluates small constant computations at import: the shape arithmetic of exported models. It is
// not an interpreter: it declines operators that it does not know, and the instructions stay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"

namespace heddle::import {

struct FoldBudget {
  int64_t value_elems = 0;  // the largest single value
  int64_t work_elems = 0;   // elements still to be computed, for all folds together; counted down
};

// The values of `roots`, which depend on constants only. Nothing if an operator is not supported
// here, or a value is too large. Floating point is rounded to its type after each operation.
std::optional<std::vector<tensor::Literal>> fold(const std::vector<hlo::Instr*>& roots,
                                                 FoldBudget& budget);

// Multi-dimensional integers, such as positions, count as shape arithmetic if they are linear in
// the index. Floats, masks and other tables are derived data: if their operators are kept, they
// stay correct for all extents. `few`: they are made from few numbers that follow from extents, and
// integers and masks are used as such, whatever they are.
bool are_shape_arithmetic(const std::vector<tensor::Literal>& values, bool few);

}  // namespace heddle::import
