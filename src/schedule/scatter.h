// Scatters of whole rows into a table: gradients of embeddings. A kernel of their own kind.
#pragma once

#include "hlo/module.h"

namespace heddle::schedule {

// Rows of f32 are combined (added, multiplied, maximum, minimum) with rows of a table that an index
// each names, or put over them.
bool is_row_scatter(const hlo::Instr& instr);
// Such scatters, one into the result of the other, the first one into a parameter or into zeros.
bool is_scatter_kernel(const hlo::Computation& computation);

}  // namespace heddle::schedule
