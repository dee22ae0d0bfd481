// Scatters of whole rows into a table, as gradients of embeddings are: stages of the kind
// `scatter`.
#pragma once

#include "hlo/module.h"

namespace heddle::stage {

// Rows of f32 are combined (added, multiplied, maximum, minimum) with rows of a table that an index
// each names, or put over them.
bool is_row_scatter(const hlo::Instr& instr);

}  // namespace heddle::stage
