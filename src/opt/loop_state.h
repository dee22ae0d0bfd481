// Loops whose state may gain or lose elements without any other code noticing.
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

// Loops whose state is a tuple that is only read by element, inside and outside, whose body makes
// its next state as a tuple, and whose computations have no other callers; inner loops before outer
// ones.
std::vector<Loop> loops_of_own_state(const hlo::Module& module);

}  // namespace heddle::opt
