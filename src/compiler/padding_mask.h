// Private to compiler: the masks that mask_padding inserts where an operator must not read padding.
#pragma once

#include "hlo/module.h"

namespace heddle::compiler {

// Whether a select inside the fusion masks padding: it compares a position with the actual extent,
// here or in another kernel of the entry. The value it masks may be anything in the padding.
bool is_padding_mask(const hlo::Instr* select, const hlo::Instr* fusion,
                     const hlo::Computation& entry);

// Operators of whose results nothing is known in the padding, whatever their operands have there:
// who counts on it has a mask behind them (opt/mask_padding).
bool mixes_padding(const hlo::Instr* instr);

// False: nothing is known of a value's padding inside the fusion, so nobody counts on it.
bool padding_may_be_known(const hlo::Instr* value, const hlo::Instr* fusion,
                          const hlo::Computation& entry);

}  // namespace heddle::compiler
