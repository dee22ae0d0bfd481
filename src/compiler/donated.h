// Private to compiler: which inputs the results of a kernel lie on.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "stitch/stitch.h"

namespace heddle::compiler {

// Stitched::in_place, but where the module gives an output the memory of an input
// (input_output_alias) and the kernel makes the one and may overwrite the other, it does: an
// optimizer's step lies on the parameters, not on their gradients.
std::vector<int> inputs_to_overwrite(const hlo::Instr& fusion, const stitch::Stitched& stitched);

}  // namespace heddle::compiler
