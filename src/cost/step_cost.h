// The time of a step of a loop.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "target/target.h"

namespace heddle::cost {

struct StepCost {
  double alone_ns = 0;   // as one task
  double spread_ns = 0;  // as commands, which all cores share
};

// `kernels`: the fusions and updates of a step. The weights come from the second cache: they are
// read again in every step.
StepCost cost_of_step(const std::vector<const hlo::Instr*>& kernels, const target::Target& target);

}  // namespace heddle::cost
