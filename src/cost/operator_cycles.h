// What one vector of an operator costs, by the target's table.
#pragma once

#include "hlo/opcode.h"
#include "target/target.h"

namespace heddle::cost {

// Cycles at full rate. `fast`: in the form that a named rewrite allows (stage_graph.h). An operator
// without a row of its own costs what the measured operator of its class does.
double operator_cycles(hlo::Opcode opcode, bool fast, const target::Target& target);

}  // namespace heddle::cost
