// Hyperbolic functions of double and their inverses, by exp, expm1, log and log1p.
#include <limits>

#include "emit/llvm/math_parts.h"

namespace heddle::emit {
namespace {

using llvm::Value;

constexpr double kLn2 = 0.69314718055994529;

// exp(a) / 2 without overflow before the result does.
Value* half_exp(const MathKit& k, Value* a) {
  Value* root = math_exp(k, k.mul(a, 0.5));
  return k.mul(k.mul(root, 0.5), root);
}

}  // namespace

Value* math_sinh(const MathKit& k, Value* x) {
  Value* a = k.abs(x);
  Value* t = math_expm1(k, k.at_most(a, 30));
  Value* near = k.mul(k.add(t, k.div(t, k.add(t, 1))), 0.5);
  return k.copysign(k.select(k.greater(a, 22), half_exp(k, a), near), x);
}

Value* math_cosh(const MathKit& k, Value* x) {
  Value* a = k.abs(x);
  Value* e = math_exp(k, k.at_most(a, 30));
  Value* near = k.add(k.mul(e, 0.5), k.div(k.number(0.5), e));
  return k.select(k.greater(a, 22), half_exp(k, a), near);
}

Value* math_asinh(const MathKit& k, Value* x) {
  Value* a = k.abs(x);
  Value* large = k.greater(a, 0x1p28);
  Value* bounded = k.select(large, k.number(1), a);
  Value* square = k.mul(bounded, bounded);
  Value* root = k.sqrt(k.add(square, 1));
  Value* near = math_log1p(k, k.add(bounded, k.div(square, k.add(root, 1))));
  Value* far = k.add(math_log(k, a), kLn2);
  return k.copysign(k.select(large, far, near), x);
}

Value* math_acosh(const MathKit& k, Value* x) {
  Value* large = k.greater(x, 0x1p28);
  Value* t = k.add(k.select(large, k.number(2), x), -1);
  Value* near = math_log1p(k, k.add(t, k.sqrt(k.mad(t, t, k.mul(t, 2)))));
  Value* far = k.add(math_log(k, x), kLn2);
  Value* result = k.select(large, far, near);
  Value* nan = k.number(std::numeric_limits<double>::quiet_NaN());
  return k.select(k.less(x, 1), nan, result);
}

Value* math_atanh(const MathKit& k, Value* x) {
  Value* a = k.abs(x);
  Value* ratio = k.div(k.mul(a, 2), k.sub(k.number(1), a));
  return k.copysign(k.mul(math_log1p(k, ratio), 0.5), x);
}

}  // namespace heddle::emit
