// erf: an odd polynomial up to 1, 1 - erfc beyond; erfc.
#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_tables.h"

namespace heddle::emit {

using llvm::Value;

namespace {

// x exp(x^2) erfc(x) by 1/x^2, x in [6.5, 27.5]; within 7.1e-17 on [0.00066, 0.0239].
constexpr double kErfcFar[] = {0.5641895835477562,  -0.28209479177350527, 0.4231421873332722,
                               -1.0578553300105675, 3.702460961182183,    -16.656407416486044,
                               91.19254070368659,   -569.1754120011249,   3454.453700973019,
                               -13650.388828092115};

}  // namespace

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
    far = k.sub(k.number(1), k.mul(math_exp_sum(k, k.neg(high), k.neg(low)), g));
  } else {
    near = k.mul(x, k.poly(z, kErfSmallF32));
    Value* bounded = k.at_most(a, 4);
    far = k.sub(k.number(1), math_exp_fast(k, k.poly(bounded, kErfLargeF32)));
  }
  return k.select(k.less(a, 1), near, k.copysign(far, x));
}

// 1 - erf up to 1, beyond that a polynomial of its own, and for negative x 2 minus that.
Value* math_erfc(const MathKit& k, Value* x) {
  Value* near = k.sub(k.number(1), k.mul(x, k.poly(k.mul(x, x), kErfSmallF64)));
  Value* a = k.at_most(k.abs(x), 27.5);
  auto [high, low] = k.product(a, a);
  // Beyond 6.5 a polynomial by (a - 2)/(a + 2) would have to cancel to become small.
  Value* bounded = k.at_most(a, 6.5);
  Value* g = k.poly(k.div(k.add(bounded, -2), k.add(bounded, 2)), kErfLargeF64);
  Value* u = k.div(k.number(1), high);
  Value* scaled = k.select(k.less(a, 6.5), g, k.div(k.poly(u, kErfcFar), a));
  Value* tail = k.mul(math_exp_sum(k, k.neg(high), k.neg(low)), scaled);
  Value* far = k.select(k.less(x, 0), k.sub(k.number(2), tail), tail);
  return k.select(k.less(k.abs(x), 1), near, far);
}

Value* math_erf_fast(const MathKit& k, Value* x) {
  Value* bounded = k.at_most(k.at_least(x, -4), 4);
  Value* u = k.mad(k.mul(bounded, bounded), k.number(0.125), k.number(-1));
  return k.mul(bounded, k.poly(u, kErfFast));
}

}  // namespace heddle::emit
