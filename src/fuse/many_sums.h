// Private to fuse: scalars computed from the sums of many arrays (a global norm).
#pragma once

#include <vector>

#include "hlo/module.h"

namespace heddle::fuse {

// Whether it is a scalar computed from the sums of more than eight arrays. It takes a while, so it
// is computed once, and separately from the sums, which then are identical kernels
// (form_tables.cc).
bool puts_many_together(const hlo::Instr* instr);
// Whether the members are scalars, and one is computed from many sums.
bool puts_many_together(const std::vector<hlo::Instr*>& members);

bool is_of_scalars(const std::vector<hlo::Instr*>& members);

}  // namespace heddle::fuse
