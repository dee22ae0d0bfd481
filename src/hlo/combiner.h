// The single operator that the computation of a reduce or a scatter applies, if it is one.
#pragma once

#include <optional>

#include "hlo/module.h"

namespace heddle::hlo {

// For binary operators on numbers and bits: f(a, b) = f(b, a), except for the bits of a NaN.
bool is_commutative(Opcode opcode);

// The opcode of {opcode(p0, p1)} or {opcode(p1, p0)} with a commutative opcode.
std::optional<Opcode> combiner_of(const Computation& computation);

}  // namespace heddle::hlo
