#include "emit/llvm/math_kit.h"

#include <llvm/IR/Intrinsics.h>

#include "emit/llvm/arith.h"

namespace heddle::emit {

using llvm::Value;

MathKit::MathKit(MathContext& context, Value* like)
    : context_(context),
      b_(context.builder),
      type_(like->getType()),
      bits_(static_cast<int>(type_->getScalarSizeInBits())) {
  int_type_ = heddle::emit::like(b_.getIntNTy(static_cast<unsigned>(bits_)), type_);
}

Value* MathKit::mad(Value* a, Value* b, Value* c) const {
  if (context_.isa.fma) return emit_fma(context_, a, b, c);
  return add(mul(a, b), c);
}

Value* MathKit::abs(Value* a) const { return intrinsic(b_, llvm::Intrinsic::fabs, {a}); }
Value* MathKit::sqrt(Value* a) const { return intrinsic(b_, llvm::Intrinsic::sqrt, {a}); }

Value* MathKit::copysign(Value* magnitude, Value* sign) const {
  return intrinsic(b_, llvm::Intrinsic::copysign, {magnitude, sign});
}

Value* MathKit::at_most(Value* a, double limit) const {
  return b_.CreateSelect(b_.CreateFCmpOLT(number(limit), a), number(limit), a);
}

Value* MathKit::at_least(Value* a, double limit) const {
  return b_.CreateSelect(b_.CreateFCmpOGT(number(limit), a), number(limit), a);
}

Value* MathKit::poly(Value* x, std::span<const double> c) const {
  Value* result = number(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) result = mad(result, x, number(c[i]));
  return result;
}

std::pair<Value*, Value*> MathKit::nearest(Value* a) const {
  // Adding 1.5 * 2^(mantissa bits) leaves the integer in the low bits.
  Value* magic = number(is_double() ? 0x1.8p52 : 0x1.8p23);
  Value* shifted = add(a, magic);
  return {sub(shifted, magic), b_.CreateSub(bits(shifted), bits(magic))};
}

Value* MathKit::power_of_two(Value* n) const {
  Value* exponent = b_.CreateAdd(n, integer(is_double() ? 1023 : 127));
  return unbits(b_.CreateShl(exponent, integer(is_double() ? 52 : 23)));
}

Value* MathKit::scale(Value* a, Value* n) const {
  Value* half = b_.CreateAShr(n, integer(1));
  Value* once = mul(a, power_of_two(half));
  return mul(once, power_of_two(b_.CreateSub(n, half)));
}

std::pair<Value*, Value*> MathKit::split(Value* a) const {
  Value* big = mul(a, is_double() ? 134217729.0 : 4097.0);
  Value* high = sub(big, sub(big, a));
  return {high, sub(a, high)};
}

std::pair<Value*, Value*> MathKit::product(Value* a, Value* b) const {
  Value* p = mul(a, b);
  if (context_.isa.fma) return {p, emit_fma(context_, a, b, neg(p))};
  auto [ah, al] = split(a);
  auto [bh, bl] = split(b);
  Value* error = sub(mul(ah, bh), p);
  error = add(add(error, mul(ah, bl)), mul(al, bh));
  return {p, add(error, mul(al, bl))};
}

std::pair<Value*, Value*> MathKit::quick_sum(Value* a, Value* b) const {
  Value* s = add(a, b);
  return {s, sub(b, sub(s, a))};
}

std::pair<Value*, Value*> MathKit::sum(Value* a, Value* b) const {
  Value* s = add(a, b);
  Value* b_part = sub(s, a);
  Value* a_part = sub(s, b_part);
  return {s, add(sub(a, a_part), sub(b, b_part))};
}

}  // namespace heddle::emit
