// Private to compiler: the masks that mask_padding inserts where an operator must not read padding.
#pragma once

#include "hlo/module.h"

namespace heddle::compiler {

// Whether a select inside the fusion masks padding: it compares a position with the actual extent,
// here or in another kernel of the entry. The value it masks may be anything in the padding.
bool is_padding_mask(const hlo::Instr* select, const hlo::Instr* fusion,
                     const hlo::Computation& entry);

}  // namespace heddle::compiler
