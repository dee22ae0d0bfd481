// Index values: an iota, or an iota scaled and shifted by constants (shifts 0, 4, 8, …). They need
// no memory: a reader computes one from its own index.
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
