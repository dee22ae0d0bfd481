// erf: an odd polynomial up to 1, 1 - erfc beyond.
#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_tables.h"

namespace heddle::emit {

using llvm::Value;

Value* math_erf(const MathKit& k, Value* x) {
  Value* a = k.abs(x);
  Value* z = k.mul(x, x);
  Value *near, *far;
  if (k.is_double()) {
    near = k.mul(x, k.poly(z, kErfSmallF64));
    // erfc(a) = exp(-a^2) G(a), a^2 in two parts.
    Value* bounded = k.at_most(a, 6.5);
    auto [high, low] = k.product(bounded, bounded);
    Value* t = k.div(k.add(bounded, -2), k.add(bounded, 2));
    Value* g = k.poly(t, kErfLargeF64);
    far = k.sub(k.number(1), k.mul(math_exp(k, k.neg(high), k.neg(low)), g));
  } else {
    near = k.mul(x, k.poly(z, kErfSmallF32));
    Value* bounded = k.at_most(a, 4);
    far = k.sub(k.number(1), math_exp_fast(k, k.poly(bounded, kErfLargeF32)));
  }
  return k.select(k.less(a, 1), near, k.copysign(far, x));
}

Value* math_erf_fast(const MathKit& k, Value* x) {
  Value* bounded = k.at_most(k.at_least(x, -4), 4);
  Value* u = k.mad(k.mul(bounded, bounded), k.number(0.125), k.number(-1));
  return k.mul(bounded, k.poly(u, kErfFast));
}

}  // namespace heddle::emit
