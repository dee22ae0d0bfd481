// Instructions without a kernel: the little module that a host call carries.
#pragma once

#include <string>

#include "hlo/module.h"
#include "plan/flow.h"

namespace heddle::plan {

// Text of a module whose entry has one parameter a leaf of `instr`'s operands, in order, and whose
// root is a copy of `instr`. Called computations come along; layouts and annotations stay behind.
std::string host_module_text(const hlo::Instr& instr);

// The same of a packed node: one parameter a leaf of its operands, and a tuple of its results.
std::string packed_module_text(const Node& node);

}  // namespace heddle::plan
