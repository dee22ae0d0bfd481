// Disturbance: perturbs every rounding of an evaluation at random, within its bound. The change of
// the result shows how well the module is conditioned, whatever types it computes in: the scale
// comes from the operands of each operator, not from the result, which may cancel to zero.
#pragma once

#include <cstdint>
#include <functional>

#include "hlo/module.h"
#include "tensor/literal.h"

namespace heddle::interp {

struct Disturbance {
  // Relative to each element: for float operands before the operator reads them (terms of a sum,
  // which may cancel), and for its float results.
  struct Amounts {
    double operands = 0, result = 0;
  };
  std::function<Amounts(const hlo::Instr&)> amounts;
  uint64_t seed = 0;
};

// Each float (or complex component) x becomes x (1 + amount r), r uniform in [-1, 1], rounded to
// its type. The same `seed` and `counter` give the same values; `counter` advances. Tuples: all
// leaves.
void disturb(tensor::Literal& value, double amount, uint64_t seed, uint64_t& counter);

}  // namespace heddle::interp
