// Private to compiler: the masks that mask_padding put where an operator must not see padding.
#pragma once

#include "hlo/module.h"

namespace heddle::compiler {

// Whether a select inside of the fusion is by where the padding begins: a place compared with the
// extent, here or in another kernel of the entry. What it masks may be anything there.
bool is_padding_mask(const hlo::Instr* select, const hlo::Instr* fusion,
                     const hlo::Computation& entry);

}  // namespace heddle::compiler
