// The module text that a host call carries, for instructions without a kernel.
#pragma once

#include <string>

#include "hlo/module.h"
#include "plan/flow.h"

namespace heddle::plan {

// Text of a module whose entry has one parameter per leaf of `instr`'s operands, in order, and
// whose root is a copy of `instr`. Called computations are included; layouts and annotations are
// not.
std::string host_module_text(const hlo::Instr& instr);

// The same for a packed node: one parameter per leaf of its operands, and a tuple of its results.
std::string packed_module_text(const Node& node);

}  // namespace heddle::plan
