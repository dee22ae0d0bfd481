// Loops whose state may be given more or fewer elements without anybody seeing it.
#pragma once

#include <cstddef>
#include <vector>

#include "hlo/module.h"

namespace heddle::opt {

struct Loop {
  hlo::Instr* instr;
  hlo::Computation *condition, *body;
  hlo::Instr* state() const { return body->parameters()[0]; }  // in the body
  size_t size() const { return instr->shape().elements().size(); }
};

// Those with a tuple as state that is only read by element, inside and outside, whose body makes
// its next state as a tuple, and whose computations nobody else calls; inner loops before outer
// ones.
std::vector<Loop> loops_of_own_state(const hlo::Module& module);

}  // namespace heddle::opt
