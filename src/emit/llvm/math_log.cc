// log: x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log(x) = e ln 2 + log(1 + f).
#include <limits>

#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_tables.h"

namespace heddle::emit {
namespace {

using llvm::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2HighF32 = 0.693359375, kLn2LowF32 = -2.1219444005469057e-04;
constexpr double kLn2HighF64 = 0x1.62e42feep-1, kLn2LowF64 = 0x1.a39ef35793c76p-33;

struct Split {
  Value *f, *e;
};

// Of positive finite numbers; subnormal ones are scaled first.
Split split(const MathKit& k, Value* x) {
  auto& b = k.builder();
  bool wide = k.is_double();
  int mantissa = wide ? 52 : 23;
  Value* tiny = k.less(x, wide ? 0x1p-1022 : 0x1p-126);
  x = k.select(tiny, k.mul(x, wide ? 0x1p54 : 0x1p24), x);
  // Subtracting the bits of sqrt(1/2) makes the exponent field change there and not at 1.
  uint64_t half_root = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  Value* bits = k.bits(x);
  Value* e = b.CreateAShr(b.CreateSub(bits, k.integer(half_root)),
                          k.integer(static_cast<uint64_t>(mantissa)));
  Value* m =
      k.unbits(b.CreateSub(bits, b.CreateShl(e, k.integer(static_cast<uint64_t>(mantissa)))));
  // The exponent as a float, without a 64-bit conversion.
  Value* magic = k.number(wide ? 0x1.8p52 : 0x1.8p23);
  Value* real = k.sub(k.unbits(b.CreateAdd(e, k.bits(magic))), magic);
  real = k.select(tiny, k.add(real, wide ? -54 : -24), real);
  return {k.add(m, -1), real};
}

Value* special(const MathKit& k, Value* x, Value* result) {
  result = k.select(k.equal(x, kInfinity), x, result);
  result = k.select(k.equal(x, 0), k.number(-kInfinity), result);
  Value* valid = k.builder().CreateFCmpOGE(x, k.number(0));
  return k.select(valid, result, k.number(kNaN));
}

}  // namespace

Value* math_log(const MathKit& k, Value* x) {
  auto [f, e] = split(k, x);
  Value* result;
  if (k.is_double()) {
    // log(1 + f) = f - (f^2/2 - s (f^2/2 + z A(z))), s = f / (2 + f), z = s^2
    Value* s = k.div(f, k.add(f, 2));
    Value* z = k.mul(s, s);
    Value* half_square = k.mul(k.mul(f, f), 0.5);
    Value* inner = k.mul(s, k.mad(z, k.poly(z, kLogF64), half_square));
    inner = k.mad(e, kLn2LowF64, inner);
    result = k.mad(e, kLn2HighF64, k.sub(f, k.sub(half_square, inner)));
  } else {
    Value* square = k.mul(f, f);
    Value* tail = k.mul(k.mul(f, square), k.poly(f, kLogF32));
    tail = k.mad(e, kLn2LowF32, tail);
    tail = k.mad(square, -0.5, tail);
    result = k.mad(e, kLn2HighF32, k.add(f, tail));
  }
  return special(k, x, result);
}

Value* math_log1p(const MathKit& k, Value* x) {
  // With u = 1 + x rounded, log(u) x / (u - 1) corrects the rounding error.
  Value* u = k.add(x, 1);
  Value* lost = k.add(u, -1);
  Value* result = k.mul(math_log(k, u), k.div(x, lost));
  result = k.select(k.equal(lost, 0), x, result);
  return k.select(k.equal(x, kInfinity), x, result);
}

Value* math_rsqrt(const MathKit& k, Value* x) { return k.div(k.number(1), k.sqrt(x)); }

// x^y for double: log(x) in two doubles, good to 2^-64 or so; then exp of y log(x).
namespace {

std::pair<Value*, Value*> precise_log(const MathKit& k, Value* x) {
  auto [f, e] = split(k, x);
  // s = f / (2 + f) = s_high + s_low
  auto [d_high, d_low] = k.sum(k.number(2), f);
  Value* s_high = k.div(f, d_high);
  auto [back, back_low] = k.product(s_high, d_high);
  Value* rest = k.sub(k.sub(k.sub(f, back), back_low), k.mul(s_high, d_low));
  Value* s_low = k.div(rest, d_high);
  // z = s^2 and q = 2/3 + z A2(z), both in two parts.
  auto [z_high, z_low] = k.product(s_high, s_high);
  z_low = k.add(z_low, k.mul(k.mul(s_high, s_low), 2));
  constexpr double kThird = 2.0 / 3.0, kThirdLow = 0x1.5555555555555p-55;
  Value* series = k.mul(z_high, k.poly(z_high, kLogPow));
  auto [q_high, q_low] = k.quick_sum(k.number(kThird), series);
  q_low = k.add(q_low, kThirdLow);
  // w = s z q
  auto [sz_high, sz_low] = k.product(s_high, z_high);
  sz_low = k.add(sz_low, k.add(k.mul(s_high, z_low), k.mul(s_low, z_high)));
  auto [w_high, w_low] = k.product(sz_high, q_high);
  w_low = k.add(w_low, k.add(k.mul(sz_high, q_low), k.mul(sz_low, q_high)));
  // e ln 2 + 2 s + w
  auto [a, a_low] = k.sum(k.mul(e, kLn2HighF64), k.mul(s_high, 2));
  auto [b, b_low] = k.sum(a, w_high);
  Value* low = k.add(k.add(a_low, b_low), k.add(k.mul(s_low, 2), w_low));
  auto [c, c_low] = k.product(e, k.number(kLn2LowF64));
  auto [high, high_low] = k.sum(b, c);
  constexpr double kLn2Rest = 1.1612227229362532e-26;  // ln 2 minus its two parts
  low = k.add(k.add(low, high_low), k.mad(e, kLn2Rest, c_low));
  return k.quick_sum(high, low);
}

// Masks: y is an odd integer; y is an integer.
std::pair<Value*, Value*> parity(const MathKit& k, Value* y) {
  auto& b = k.builder();
  Value* a = k.abs(y);
  Value* large = k.builder().CreateFCmpOGE(a, k.number(0x1p53));  // even, or infinite
  auto [rounded, whole] = k.nearest(k.at_most(a, 0x1p51 - 1));
  Value* middle = k.less(a, 0x1p51 - 1);
  // Between 2^51 and 2^53 the last bits of the number decide.
  Value* bits = k.bits(a);
  Value* units = k.less(a, 0x1p52);
  Value* half_bit = b.CreateAnd(bits, k.integer(1));
  Value* unit_bit = b.CreateAnd(bits, k.select(units, k.integer(2), k.integer(1)));
  Value* upper_integer = b.CreateOr(b.CreateNot(units), b.CreateICmpEQ(half_bit, k.integer(0)));
  Value* integer = k.select(middle, b.CreateFCmpOEQ(rounded, a), upper_integer);
  Value* odd = k.select(middle, b.CreateICmpNE(b.CreateAnd(whole, k.integer(1)), k.integer(0)),
                        b.CreateICmpNE(unit_bit, k.integer(0)));
  odd = k.both(k.both(integer, odd), b.CreateNot(large));
  return {odd, integer};
}

}  // namespace

Value* math_pow(const MathKit& k, Value* x, Value* y) {
  auto& b = k.builder();
  Value* a = k.abs(x);
  auto [log_high, log_low] = precise_log(k, a);
  // Beyond these limits on y the result is 0, 1 or infinity all the same: |log x| >= 2^-53.
  Value* bounded = k.at_least(k.at_most(y, 0x1p65), -0x1p65);
  auto [high, low] = k.product(log_high, bounded);
  low = k.mad(log_low, bounded, low);
  Value* huge = k.greater(k.abs(high), 1000);
  Value* result = math_exp_sum(k, high, k.select(huge, k.number(0), low));

  auto [odd, integer] = parity(k, y);
  Value* negative = b.CreateICmpSLT(k.bits(x), k.integer(0));
  // The base is 0 or infinity: the result is the other or itself, by the sign of y.
  Value *zero = k.equal(x, 0), *infinite = k.equal(a, kInfinity);
  Value* grows = b.CreateXor(zero, k.greater(y, 0));
  result = k.select(b.CreateOr(zero, infinite), k.select(grows, k.number(kInfinity), k.number(0)),
                    result);
  Value* signed_result = k.select(k.both(negative, odd), k.neg(result), result);
  Value* invalid = k.both(k.both(k.less(x, 0), b.CreateNot(integer)), k.less(a, kInfinity));
  result = k.select(invalid, k.number(kNaN), signed_result);
  // y infinite: by |x| against 1.
  Value* above = b.CreateXor(k.greater(a, 1), k.less(y, 0));
  Value* limit =
      k.select(k.equal(a, 1), k.number(1), k.select(above, k.number(kInfinity), k.number(0)));
  result = k.select(k.equal(k.abs(y), kInfinity), limit, result);
  result = k.select(b.CreateOr(k.is_nan(x), k.is_nan(y)), k.number(kNaN), result);
  return k.select(b.CreateOr(k.equal(x, 1), k.equal(y, 0)), k.number(1), result);
}

}  // namespace heddle::emit
