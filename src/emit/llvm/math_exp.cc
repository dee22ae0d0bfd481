// exp and functions based on it. With n = round(x / ln 2) and r = x - n ln 2, |r| <= ln 2 / 2:
// exp(x) = 2^n (1 + r + r^2 E(r)). ln 2 is subtracted in two parts, the first with so few bits that
// n times it is exact.
#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "emit/llvm/math_avx512.h"
#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_tables.h"

namespace heddle::emit {
namespace {

using llvm::Value;

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
// ln 2 = high + low; the high parts have 10 and 32 bits.
constexpr double kLn2HighF32 = 0.693359375, kLn2LowF32 = -2.1219444005469057e-04;
constexpr double kLn2HighF64 = 0x1.62e42feep-1, kLn2LowF64 = 0x1.a39ef35793c76p-33;

struct Reduced {
  Value* r;     // |r| <= ln 2 / 2, about
  Value* real;  // n as a float
  Value* n;     // and as an integer
};

Reduced reduce(const MathKit& k, Value* x) {
  auto [real, n] = k.nearest(k.mul(x, kLog2E));
  bool wide = k.is_double();
  Value* r = k.mad(real, wide ? -kLn2HighF64 : -kLn2HighF32, x);
  r = k.mad(real, wide ? -kLn2LowF64 : -kLn2LowF32, r);
  return {r, real, n};
}

// (exp(r) - 1 - r) / r^2
Value* tail(const MathKit& k, Value* r) {
  return k.is_double() ? k.poly(r, kExpF64) : k.poly(r, kExpF32);
}

}  // namespace

Value* math_exp(const MathKit& k, Value* x) { return math_exp_sum(k, x, nullptr); }

Value* math_exp_sum(const MathKit& k, Value* x, Value* low) {
  // Beyond the limits the result is 0 or infinity all the same, and n stays small.
  x = k.at_least(k.at_most(x, k.is_double() ? 720 : 100), k.is_double() ? -760 : -110);
  Reduced reduced = reduce(k, x);
  Value* r = reduced.r;
  auto scale = [&](Value* p) {
    return has_avx512_exponent(k) ? avx512_scale(k, p, reduced.real) : k.scale(p, reduced.n);
  };
  if (!low && k.context().isa.fma) {  // the last rounding is the only large one
    return scale(k.mad(r, k.mad(r, tail(k, r), k.number(1)), k.number(1)));
  }
  Value* square = k.mul(r, r);
  Value* rest = k.mad(square, tail(k, r), r);
  if (low) rest = k.add(rest, k.mad(low, rest, low));
  return scale(k.add(rest, 1));
}

Value* math_expm1(const MathKit& k, Value* x) {
  Value* bounded = k.at_least(k.at_most(x, k.is_double() ? 720 : 100), k.is_double() ? -45 : -25);
  auto [r, real, n] = reduce(k, bounded);
  Value* part = k.mad(k.mul(r, r), tail(k, r), r);  // exp(r) - 1
  // 2^n part + (2^n - 1), by halves: 2^n itself may not be representable where the result is.
  Value* half = k.power_of_two(k.builder().CreateSub(n, k.integer(1)));
  Value* result = k.mul(k.mad(half, part, k.add(half, -0.5)), 2);
  Value* infinity = k.number(std::numeric_limits<double>::infinity());
  result = k.select(k.greater(x, k.is_double() ? 709.79 : 88.73), infinity, result);
  return k.select(k.equal(x, 0), x, result);  // the sign of zero
}

namespace {

// As math_tanh() below, without the cases that only expm1 itself needs: with s = 2|x| and n its
// nearest multiple of ln 2, t = exp(s) - 1 = 2^n (exp(r) - 1) + (2^n - 1), tanh = t / (t + 2). One
// part of ln 2 is enough: where n is not 0, an error of r is divided by exp(s) / 2 in the result.
// The quotient uses a reciprocal of 14 bits and one correction.
Value* avx512_tanh(const MathKit& k, Value* x) {
  Value* magnitude = k.at_most(k.abs(x), 22);
  Value* s = k.add(magnitude, magnitude);
  Value* n = k.builder().CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, k.mul(s, kLog2E));
  Value* r = k.mad(n, -kLn2, s);
  Value* part = k.mad(k.mul(r, r), tail(k, r), r);
  Value* power = avx512_scale(k, k.number(1), n);
  Value* t = k.mad(power, part, k.add(power, -1));
  Value* below = k.add(t, 2);
  Value* inverse = avx512_reciprocal_14(k, below);
  Value* result = k.mul(t, inverse);
  result = k.mad(k.mad(k.neg(below), result, t), inverse, result);
  return k.copysign(result, x);
}

}  // namespace

Value* math_tanh(const MathKit& k, Value* x) {
  if (has_avx512_exponent(k) && !k.is_double()) return avx512_tanh(k, x);
  // (exp(2a) - 1) / (exp(2a) + 1), a = |x|; beyond 22 it is 1.
  Value* magnitude = k.at_most(k.abs(x), 22);
  Value* t = math_expm1(k, k.mul(magnitude, 2));
  return k.copysign(k.div(t, k.add(t, 2)), x);
}

Value* math_logistic(const MathKit& k, Value* x) {
  // z = exp(-|x|) never overflows: 1 / (1 + z) or z / (1 + z).
  Value* z = math_exp(k, k.neg(k.abs(x)));
  Value* top = k.select(k.less(x, 0), z, k.number(1));
  return k.div(top, k.add(z, 1));
}

Value* math_exp_fast(const MathKit& k, Value* x) {
  Value* t = k.mul(x, kLog2E);
  // Zero where the result would be subnormal: multiplying subnormals is slow (attention masks of
  // -100 leave such numbers everywhere).
  Value* nothing = k.less(t, -125.99);
  if (has_avx512_exponent(k)) {
    Value* keep = k.builder().CreateFCmpUGE(t, k.number(-125.99));
    return avx512_scale_where(k, keep, k.poly(avx512_fraction(k, t), kExp2Reduced), t);
  }
  // 2^t by one multiplication with 2^n, an integer in the exponent: t is bounded to where that is
  // a normal number, zero or infinity.
  t = k.select(nothing, k.number(-127), k.at_most(t, 128));
  auto [real, n] = k.nearest(t);
  Value* p = k.poly(k.sub(t, real), kExp2Fast);
  return k.mul(p, k.power_of_two(n));
}

namespace {

// 2^t for t between normal powers.
Value* avx512_exp2(const MathKit& k, Value* t) {
  return avx512_scale(k, k.poly(avx512_fraction(k, t), kExp2Reduced), t);
}

}  // namespace

Value* math_logistic_fast(const MathKit& k, Value* x) {
  if (!has_avx512_exponent(k) || k.is_double())
    return k.div(k.number(1), k.add(math_exp_fast(k, k.neg(x)), 1));
  // Where exp(-x) is too large for the reciprocal the result is 0, within 1e-37.
  Value* t = k.at_least(k.mul(x, -kLog2E), -126);
  Value* nothing = k.greater(t, 125);
  Value* y = avx512_reciprocal(k, k.add(avx512_exp2(k, t), 1));
  return k.select(nothing, k.number(0), y);
}

Value* math_tanh_fast(const MathKit& k, Value* x) {
  // 1 - 2 / (1 + exp(2x)): absolute error of an ulp of 1.
  if (!has_avx512_exponent(k) || k.is_double()) {
    Value* e = math_exp_fast(k, k.mul(x, 2));
    return k.sub(k.number(1), k.div(k.number(2), k.add(e, 1)));
  }
  Value* t = k.at_most(k.at_least(k.mul(x, 2 * kLog2E), -126), 125);
  Value* y = avx512_reciprocal(k, k.add(avx512_exp2(k, t), 1));
  return k.mad(y, -2, k.number(1));
}

}  // namespace heddle::emit
