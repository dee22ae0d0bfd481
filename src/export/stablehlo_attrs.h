// Attributes of StableHLO operations, as text.
#pragma once

#include <string>

#include "hlo/module.h"

namespace heddle::exports {

// "name = value, name = value" for the operation that an instruction becomes (stablehlo.h); empty:
// none. Called computations are regions, not attributes.
std::string stablehlo_attrs(const hlo::Instr& instr);

}  // namespace heddle::exports
