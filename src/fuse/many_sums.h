// Private to fuse: what is made of the sums of many arrays (a global norm).
#pragma once

#include <vector>

#include "hlo/module.h"

namespace heddle::fuse {

// A scalar made of the sums of more than eight arrays. It takes a while, so it is computed once;
// and apart from the sums, which are kernels that look alike then (form_tables.cc).
bool puts_many_together(const hlo::Instr* instr);
// A group of scalars with one such.
bool puts_many_together(const std::vector<hlo::Instr*>& members);

bool is_of_scalars(const std::vector<hlo::Instr*>& members);

}  // namespace heddle::fuse
