// Private to opt: one draw of the operators rng and rng-get-and-update-state as arithmetic on the
// random state, an array u64[3]: the count of numbers drawn by rng, then the low and the high word
// of rng-get-and-update-state. The numbers equal those of interp/rng.cc to the bit, except for the
// rounding of functions in f64.
#pragma once

#include "hlo/builder.h"

namespace heddle::opt {

hlo::Shape random_state_shape();
hlo::Literal random_state_start();  // the initial value of interp::RandomState

bool is_draw(const hlo::Instr* instr);
// Error (user): a draw of a shape or type that cannot be written as arithmetic.
Status check_draw(const hlo::Instr& instr);

struct Drawn {
  hlo::Instr *value, *state;  // of the instruction's shape; the state for the next draw
};
// The value of the draw `instr` from the state `state`. Built with `b`, in the computation of both.
Drawn draw(const hlo::Instr& instr, hlo::Instr* state, hlo::Builder& b);

}  // namespace heddle::opt
