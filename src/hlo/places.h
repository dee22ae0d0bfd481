// Numbers of places: an iota, or one counted otherwise by factors and summands (shifts 0, 4, 8, …).
// They take no memory: whoever reads one computes it from where it stands.
#pragma once

#include "hlo/module.h"

namespace heddle::hlo {

inline bool counts_places(const Instr* x) {
  constexpr int kMostSteps = 4;
  for (int step = 0; step < kMostSteps && !x->is(Opcode::iota); ++step) {
    if (!(x->is(Opcode::multiply) || x->is(Opcode::add)) || !tensor::is_integer(x->shape().type()))
      return false;
    const Instr* number = x->operand(1);
    if (number->is(Opcode::broadcast)) number = number->operand(0);
    if (!number->is(Opcode::constant) || !number->shape().is_scalar()) return false;
    x = x->operand(0);
  }
  return x->is(Opcode::iota);
}

}  // namespace heddle::hlo
