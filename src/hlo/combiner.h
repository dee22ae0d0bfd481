// What the computation of a reduce or a scatter does, where it is one operator.
#pragma once

#include <optional>

#include "hlo/module.h"

namespace heddle::hlo {

// Of the binary operators on numbers and bits: f(a, b) = f(b, a), but for a NaN's bits.
bool is_commutative(Opcode opcode);

// The opcode of {opcode(p0, p1)} or {opcode(p1, p0)} with a commutative opcode.
std::optional<Opcode> combiner_of(const Computation& computation);

}  // namespace heddle::hlo
