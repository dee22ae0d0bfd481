// asin, acos, atan2 and cbrt of double.
#include <limits>

#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_tables.h"

namespace heddle::emit {
namespace {

using llvm::Value;

constexpr double kPi = 3.1415926535897931, kPiLow = 1.2246467991473532e-16;
constexpr double kHalfPi = kPi / 2, kHalfPiLow = kPiLow / 2;
constexpr double kQuarterPi = kPi / 4, kQuarterPiLow = kPiLow / 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The common part of asin and acos; for |x| > 1/2 by the identity
// asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
struct Arc {
  Value* small;       // |x| <= 1/2
  Value* base;        // |x|, or sqrt((1 - |x|) / 2)
  Value* correction;  // asin(base) - base
};

Arc arc(const MathKit& k, Value* x) {
  Value* a = k.abs(x);
  Value* small = k.builder().CreateFCmpOLE(a, k.number(0.5));
  Value* half = k.mul(k.sub(k.number(1), a), 0.5);
  Value* z = k.select(small, k.mul(a, a), half);
  Value* base = k.select(small, a, k.sqrt(half));
  return {small, base, k.mul(k.mul(base, z), k.poly(z, kAsinF64))};
}

}  // namespace

Value* math_asin(const MathKit& k, Value* x) {
  auto [small, base, correction] = arc(k, x);
  Value* near = k.add(base, correction);
  Value* far = k.sub(k.number(kHalfPi), k.sub(k.mul(near, 2), k.number(kHalfPiLow)));
  return k.copysign(k.select(small, near, far), x);
}

Value* math_acos(const MathKit& k, Value* x) {
  auto [small, base, correction] = arc(k, x);
  Value* negative = k.less(x, 0);
  Value* whole = k.add(base, correction);
  Value* signed_base = k.copysign(base, x);
  Value* middle = k.sub(k.number(kHalfPi),
                        k.add(signed_base, k.sub(k.copysign(correction, x), k.number(kHalfPiLow))));
  Value* right = k.mul(whole, 2);
  Value* left = k.sub(k.number(kPi), k.sub(right, k.number(kPiLow)));
  return k.select(small, middle, k.select(negative, left, right));
}

Value* math_atan2(const MathKit& k, Value* y, Value* x) {
  auto& b = k.builder();
  Value *ax = k.abs(x), *ay = k.abs(y);
  // Scaling huge or tiny numbers does not change their ratio.
  Value* huge = b.CreateOr(k.greater(ax, 0x1p1000), k.greater(ay, 0x1p1000));
  Value* tiny = k.both(k.less(ax, 0x1p-960), k.less(ay, 0x1p-960));
  Value* factor = k.select(huge, k.number(0x1p-60), k.select(tiny, k.number(0x1p100), k.number(1)));
  ax = k.mul(ax, factor);
  ay = k.mul(ay, factor);
  Value* steep = b.CreateFCmpOGT(ay, ax);
  Value *top = k.select(steep, ax, ay), *bottom = k.select(steep, ay, ax);
  // Two infinities make the ratio 1, two zeros 0.
  Value* equal = k.both(k.equal(top, kInfinity), k.equal(bottom, kInfinity));
  top = k.select(equal, k.number(1), top);
  bottom = k.select(equal, k.number(1), bottom);
  bottom = k.select(k.equal(bottom, 0), k.number(1), bottom);
  // atan(t) = pi/4 + atan((t - 1) / (t + 1)) above tan(pi/8).
  Value* upper = b.CreateFCmpOGT(top, k.mul(bottom, 0.41421356237309503));
  Value* numerator = k.select(upper, k.sub(top, bottom), top);
  Value* denominator = k.select(upper, k.add(top, bottom), bottom);
  Value* t = k.div(numerator, denominator);
  Value* z = k.mul(t, t);
  Value* tail = k.mul(k.mul(t, z), k.poly(z, kAtanF64));
  Value* offset = k.select(upper, k.number(kQuarterPi), k.number(0));
  Value* offset_low = k.select(upper, k.number(kQuarterPiLow), k.number(0));
  Value* angle = k.add(offset, k.add(t, k.add(tail, offset_low)));
  // Finite over infinite: (top - inf) / (top + inf) is not taken, upper is false there.
  angle = k.select(steep, k.sub(k.number(kHalfPi), k.sub(angle, k.number(kHalfPiLow))), angle);
  Value* left = b.CreateICmpSLT(k.bits(x), k.integer(0));
  angle = k.select(left, k.sub(k.number(kPi), k.sub(angle, k.number(kPiLow))), angle);
  angle = k.copysign(angle, y);
  Value* bad = b.CreateFCmpUNO(x, y);
  return k.select(bad, k.add(x, y), angle);
}

Value* math_cbrt(const MathKit& k, Value* x) {
  auto& b = k.builder();
  Value* a = k.abs(x);
  Value *tiny = k.less(a, 0x1p-1000), *huge = k.greater(a, 0x1p1000);
  a = k.mul(a, k.select(tiny, k.number(0x1p156), k.select(huge, k.number(0x1p-156), k.number(1))));
  // A third of the exponent, with the mantissa interpolated linearly: good to 5 bits.
  llvm::Type* words = like(b.getInt32Ty(), x);
  Value* top = b.CreateTrunc(b.CreateLShr(k.bits(a), k.integer(32)), words);
  Value* guess =
      b.CreateAdd(b.CreateUDiv(top, int_constant(words, 3)), int_constant(words, 715094163));
  Value* t = k.unbits(b.CreateShl(b.CreateZExt(guess, k.integer(0)->getType()), k.integer(32)));
  // Halley: t (t^3 + 2a) / (2t^3 + a) triples the digits.
  for (int i = 0; i < 3; ++i) {
    Value* cube = k.mul(k.mul(t, t), t);
    Value* change = k.div(k.sub(a, cube), k.add(k.mul(cube, 2), a));
    t = k.mad(t, change, t);
  }
  t = k.mul(t, k.select(tiny, k.number(0x1p-52), k.select(huge, k.number(0x1p52), k.number(1))));
  Value* plain = k.both(k.greater(k.abs(x), 0), k.less(k.abs(x), kInfinity));
  return k.select(plain, k.copysign(t, x), k.add(x, x));
}

}  // namespace heddle::emit
