// The cost of one vector of an operator, by the target's table.
#pragma once

#include "hlo/opcode.h"
#include "target/target.h"

namespace heddle::cost {

// Cycles at full rate. `fast`: in the form that a named rewrite allows (stage_graph.h). An operator
// that is not in the table costs as much as the measured operator of its class.
double operator_cycles(hlo::Opcode opcode, bool fast, const target::Target& target);

}  // namespace heddle::cost
