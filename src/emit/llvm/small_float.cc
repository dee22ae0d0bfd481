// The general method works on the bits of f32. With m mantissa bits and bias b of the small format:
// a normal result is the f32 pattern, rounded at bit 23 - m and its exponent rebased by 127 - b; a
// subnormal one falls out of an f32 addition of a power of two whose last bit is worth the small
// format's quantum, 2^(1 - b - m): the addition rounds, and its low bits are the result.
#include "emit/llvm/small_float.h"

#include "base/check.h"

namespace heddle::emit {
namespace {

using llvm::Value;
using tensor::FloatFormat;

constexpr uint32_t kF32Infinity = 0x7f800000;

// A small format as constants of f32 patterns.
struct Format {
  explicit Format(Type type)
      : f(tensor::float_format(type)),
        bits(tensor::type_bits(type)),
        max_bits(static_cast<uint32_t>(tensor::float_to_bits(type, f.max_finite))),
        nan_bits(f.has_negative_zero || !f.has_sign ? ones() : 1u << (bits - 1)),
        shift(23 - f.mantissa_bits),
        rebase(static_cast<uint32_t>(127 - f.bias) << 23),
        magic(static_cast<uint32_t>(151 - f.bias - f.mantissa_bits) << 23) {
    if (f.has_infinity) nan_bits = max_bits + 1 + (1u << (f.mantissa_bits - 1));
  }
  uint32_t ones() const { return (1u << (f.exponent_bits + f.mantissa_bits)) - 1; }

  const FloatFormat& f;
  int bits;
  uint32_t max_bits, nan_bits;
  int shift;
  uint32_t rebase, magic;
};

struct Ints {  // arithmetic on the 32-bit lanes
  llvm::IRBuilder<>& b;
  llvm::Type* type;
  Value* number(uint32_t n) const { return int_constant(type, n); }
  Value* add(Value* x, uint32_t n) const { return b.CreateAdd(x, number(n)); }
  Value* mask(Value* x, uint32_t n) const { return b.CreateAnd(x, number(n)); }
  Value* above(Value* x, uint32_t n) const { return b.CreateICmpUGT(x, number(n)); }
};

Value* to_bf16(const Ints& i, Value* bits) {
  auto& b = i.b;
  Value* odd = i.mask(b.CreateLShr(bits, 16), 1);
  Value* rounded = b.CreateAdd(i.add(bits, 0x7fff), odd);
  Value* is_nan = i.above(i.mask(bits, 0x7fffffff), kF32Infinity);
  Value* quiet = b.CreateOr(bits, i.number(0x400000));
  return b.CreateLShr(b.CreateSelect(is_nan, quiet, rounded), 16);
}

// Powers of two, no sign, no zero; ties go up, positive stays positive.
Value* to_e8m0(const Ints& i, Value* bits) {
  auto& b = i.b;
  Value* normal = b.CreateLShr(i.add(bits, 0x400000), 23);
  Value* tiny = b.CreateZExt(i.above(bits, 0x5fffff), i.type);
  Value* result = b.CreateSelect(i.above(bits, 0x7fffff), normal, tiny);
  // Zero, negative numbers and NaN: all patterns outside [1, infinity]; infinity rounds to 255.
  Value* bad = i.above(i.add(bits, ~0u), kF32Infinity - 1);
  return b.CreateSelect(bad, i.number(0xff), result);
}

Value* to_general(const Ints& i, Type type, Value* x, Value* bits) {
  auto& b = i.b;
  Format format(type);
  Value* magnitude = i.mask(bits, 0x7fffffff);
  Value* odd = i.mask(b.CreateLShr(magnitude, format.shift), 1);
  uint32_t below_half = (1u << (format.shift - 1)) - 1;
  Value* rounded = b.CreateAdd(i.add(magnitude, below_half - format.rebase), odd);
  Value* result = b.CreateLShr(rounded, format.shift);
  uint32_t overflow = format.f.has_infinity ? format.max_bits + 1 : format.nan_bits;
  result = b.CreateSelect(i.above(result, format.max_bits), i.number(overflow), result);

  Value* magic = from_bits(b, i.number(format.magic), x->getType());
  Value* shifted = b.CreateFAdd(from_bits(b, magnitude, x->getType()), magic);
  Value* subnormal = i.add(to_bits(b, shifted), 0 - format.magic);
  uint32_t largest_subnormal = format.rebase + 0x7fffff;  // below the smallest normal pattern
  result = b.CreateSelect(i.above(magnitude, largest_subnormal), result, subnormal);

  Value* nan = i.number(format.nan_bits);
  if (type == Type::f16) {  // payloads survive, as in hardware
    nan = b.CreateOr(nan, i.mask(b.CreateLShr(magnitude, format.shift), 0x3ff));
  }
  result = b.CreateSelect(i.above(magnitude, kF32Infinity), nan, result);
  Value* sign = i.mask(b.CreateLShr(bits, 32 - format.bits), 1u << (format.bits - 1));
  Value* with_sign = b.CreateOr(result, sign);
  if (format.f.has_negative_zero) return with_sign;
  Value* unsigned_code = b.CreateOr(b.CreateICmpEQ(result, i.number(0)),
                                    b.CreateICmpEQ(result, i.number(format.nan_bits)));
  return b.CreateSelect(unsigned_code, result, with_sign);
}

Value* from_e8m0(const Ints& i, Value* code) {
  auto& b = i.b;
  Value* normal = b.CreateShl(code, 23);
  Value* result = b.CreateSelect(b.CreateICmpEQ(code, i.number(0)), i.number(0x400000), normal);
  return b.CreateSelect(b.CreateICmpEQ(code, i.number(0xff)), i.number(0x7fc00000), result);
}

Value* from_general(const Ints& i, Type type, Value* code, llvm::Type* f32) {
  auto& b = i.b;
  Format format(type);
  Value* magnitude = i.mask(code, format.ones());
  Value* sign = b.CreateShl(i.mask(code, 1u << (format.bits - 1)), 32 - format.bits);
  Value* normal = i.add(b.CreateShl(magnitude, format.shift), format.rebase);
  Value* magic = i.number(format.magic);
  Value* shifted = from_bits(b, b.CreateAdd(magic, magnitude), f32);
  Value* subnormal = to_bits(b, b.CreateFSub(shifted, from_bits(b, magic, f32)));
  uint32_t largest_subnormal = (1u << format.f.mantissa_bits) - 1;
  Value* result = b.CreateSelect(i.above(magnitude, largest_subnormal), normal, subnormal);
  if (!format.f.has_negative_zero) {
    Value* is_nan = b.CreateICmpEQ(code, i.number(format.nan_bits));
    return b.CreateSelect(is_nan, i.number(0xffc00000), b.CreateOr(result, sign));
  }
  Value* special = i.number(0x7fc00000);
  if (format.f.has_infinity) {
    Value* payload = b.CreateShl(magnitude, format.shift);
    special = b.CreateOr(special, i.mask(payload, 0x7fffff));
    Value* is_inf = b.CreateICmpEQ(magnitude, i.number(format.max_bits + 1));
    special = b.CreateSelect(is_inf, i.number(kF32Infinity), special);
  }
  result = b.CreateSelect(i.above(magnitude, format.max_bits), special, result);
  return b.CreateOr(result, sign);
}

}  // namespace

Value* f32_to_small(MathContext& context, Type type, Value* x) {
  auto& b = context.builder;
  if (type == Type::f16 && context.isa.f16c) {
    Value* half = b.CreateFPTrunc(x, like(b.getHalfTy(), x));
    return b.CreateBitCast(half, like(b.getInt16Ty(), x));
  }
  Value* bits = to_bits(b, x);
  Ints ints{b, bits->getType()};
  Value* code = type == Type::bf16        ? to_bf16(ints, bits)
                : type == Type::f8e8m0fnu ? to_e8m0(ints, bits)
                                          : to_general(ints, type, x, bits);
  return b.CreateTrunc(code, like(value_type(b.getContext(), type), x));
}

Value* small_to_f32(MathContext& context, Type type, Value* small) {
  auto& b = context.builder;
  llvm::Type* f32 = like(b.getFloatTy(), small);
  if (type == Type::f16 && context.isa.f16c) {
    return b.CreateFPExt(b.CreateBitCast(small, like(b.getHalfTy(), small)), f32);
  }
  Value* code = b.CreateZExt(small, like(b.getInt32Ty(), small));
  Ints ints{b, code->getType()};
  Value* bits = type == Type::bf16        ? b.CreateShl(code, 16)
                : type == Type::f8e8m0fnu ? from_e8m0(ints, code)
                                          : from_general(ints, type, code, f32);
  return from_bits(b, bits, f32);
}

}  // namespace heddle::emit
