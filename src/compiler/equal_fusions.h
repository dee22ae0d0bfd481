// Whether two fusions are identical except for names.
#pragma once

#include <cstdint>

#include "hlo/module.h"

namespace heddle::compiler {

// The same instructions in the same order, whatever their names and annotations.
bool are_equal(const hlo::Computation& a, const hlo::Computation& b);
// Equal computations have equal hashes.
uint64_t shallow_hash(const hlo::Computation& computation);

}  // namespace heddle::compiler
