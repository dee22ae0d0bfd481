// Evaluates small constant computations at import: the shape arithmetic of exported models. It is
// not an interpreter: what it does not know it declines, and then the instructions stay.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"

namespace heddle::import {

struct FoldBudget {
  int64_t value_elems = 0;  // the largest single value
  int64_t work_elems = 0;   // elements still to be computed, all folds together; counted down
};

// The values of `roots`, which depend on constants only. Nothing if an operator is not among those
// known here, or a value is too large. Floating point is rounded to its type after each operation.
std::optional<std::vector<tensor::Literal>> fold(const std::vector<hlo::Instr*>& roots,
                                                 FoldBudget& budget);

// Numbers of several dimensions, as positions, are shape arithmetic where they are straight lines.
// Floats, masks and other tables are what is made of it: with the operators that make them, they
// are right for all extents.
bool is_shape_arithmetic(const tensor::Literal& value);

}  // namespace heddle::import
