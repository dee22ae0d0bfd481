// Shared by the recurrent operators: activations by name, and the walk over time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "import/onnx_emit.h"

namespace heddle::import {

// One of `activations`, with its alpha and beta.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};
// `count` of them, or the defaults if the attribute is missing; `direction`: the first or the
// second half.
std::vector<Activation> read_activations(Op& op, const std::vector<std::string>& defaults,
                                         int64_t directions, int64_t direction);
Instr* activate(Op& op, const Activation& activation, Instr* x);

// Inputs of a step.
struct Step {
  Instr* input;                // [B, gates]: the input's projection at this time
  std::vector<Instr*> states;  // [B, H]; the first one is the output
  // Values of the entry computation (weights), as visible in the step.
  std::vector<Instr*> shared;
};
using StepFunction = std::function<std::vector<Instr*>(Op& op, const Step& step)>;

struct Recurrence {
  Instr* projected = nullptr;  // [T, B, gates]
  std::vector<Instr*> states;  // initial
  std::vector<Instr*> shared;  // loop-invariant inputs of the steps
  Instr* lengths = nullptr;    // s32[B], or null: all T
  bool reverse = false;
  bool wants_all = true;  // the outputs of all times
  StepFunction step;
};

struct Walked {
  Instr* all = nullptr;  // [T, B, H]: zero after a sequence has ended
  std::vector<Instr*> states;
};

// Short sequences are unrolled; others become a while.
Walked walk_time(Op& op, const Recurrence& recurrence);

}  // namespace heddle::import
