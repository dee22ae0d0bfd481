// Deterministic arguments for a module: small magnitudes, and values that fit their use.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/module.h"
#include "tensor/literal.h"

namespace heddle::interp {

// One literal per parameter of the entry, the same for the same module and seed. Floats lie in [-1,
// 1] (so that exponentials and long products stay finite), integers are small. A parameter used as
// indices of a gather, scatter or dynamic slice stays in range (and is sorted or unique if the
// operator claims it); a start value of a reduction is its neutral value; the state of a random
// generator or a divisor of integers is not zero. Uses are followed through reshapes, converts,
// tuples, loops and calls. Dynamic dimensions take their bound.
std::vector<tensor::Literal> random_arguments(const hlo::Module& module, uint64_t seed);

// Argument `number` of those, if it is floats with no special requirement.
tensor::Literal random_floats(const tensor::Shape& shape, uint64_t seed, int64_t number);

}  // namespace heddle::interp
