// Private to opt: one draw of the operators rng and rng-get-and-update-state as arithmetic on the
// random state, an array u64[3]: numbers drawn by rng, then the low and the high word of
// rng-get-and-update-state. The numbers are those of interp/rng.cc, to the bit but for the rounding
// of functions in f64.
#pragma once

#include "hlo/builder.h"

namespace heddle::opt {

hlo::Shape random_state_shape();
hlo::Literal random_state_start();  // as interp::RandomState begins

bool is_draw(const hlo::Instr* instr);
// Error (user): it is one of a shape or type that is not written as arithmetic.
Status check_draw(const hlo::Instr& instr);

struct Drawn {
  hlo::Instr *value, *state;  // of the instruction's shape; what the next draw takes
};
// What the draw `instr` gives where the state is `state`. Made with `b`, in the computation of
// both.
Drawn draw(const hlo::Instr& instr, hlo::Instr* state, hlo::Builder& b);

}  // namespace heddle::opt
