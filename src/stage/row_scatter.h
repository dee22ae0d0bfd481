// Scatters of whole rows into a table, as in gradients of embeddings: stages of the kind `scatter`.
#pragma once

#include "hlo/module.h"

namespace heddle::stage {

// Whether rows of f32, s32 or s64 are combined (added, multiplied, maximum, minimum) with the rows
// of a table that their indices select, or replace them. A row may be a single element.
bool is_row_scatter(const hlo::Instr& instr);

}  // namespace heddle::stage
