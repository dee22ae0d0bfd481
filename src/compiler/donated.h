// Private to compiler: which inputs the results of a kernel overwrite.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "stitch/stitch.h"

namespace heddle::compiler {

// Stitched::in_place, except that an output to which the module gives an input's memory
// (input_output_alias) overwrites that input if the kernel allows it: an optimizer's step
// overwrites the parameters, not their gradients.
std::vector<int> inputs_to_overwrite(const hlo::Instr& fusion, const stitch::Stitched& stitched);

}  // namespace heddle::compiler
