#include "emit/llvm/convert.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>

#include "emit/llvm/small_float.h"

namespace heddle::emit {
namespace {

using llvm::Value;

bool is_small_float(Type type) {
  return tensor::is_float(type) && type != Type::f32 && type != Type::f64;
}

bool is_signed(Type type) { return tensor::is_signed_integer(type); }

// f64 to f32 for a second rounding: inexact results get an odd last bit, hence never look like a
// tie or an exact value of a shorter format.
Value* f64_to_f32_odd(MathContext& context, Value* x) {
  auto& b = context.builder;
  llvm::Type* f32 = like(b.getFloatTy(), x);
  Value* nearest = b.CreateFPTrunc(x, f32);
  Value* back = b.CreateFPExt(nearest, x->getType());
  Value* bits = to_bits(b, nearest);
  Value* inexact = b.CreateFCmpONE(back, x);
  Value* even = b.CreateICmpEQ(b.CreateAnd(bits, int_constant(bits->getType(), 1)),
                               int_constant(bits->getType(), 0));
  Value* up = b.CreateFCmpOGT(intrinsic(b, llvm::Intrinsic::fabs, {x}),
                              intrinsic(b, llvm::Intrinsic::fabs, {back}));
  Value* step = b.CreateSelect(up, int_constant(bits->getType(), 1),
                               int_constant(bits->getType(), ~uint64_t{0}));
  Value* odd = b.CreateSelect(b.CreateAnd(inexact, even), b.CreateAdd(bits, step), bits);
  return from_bits(b, odd, f32);
}

// A 64-bit integer as a double that a format of at most 24 bits may be rounded from: beyond 2^53
// the low bits are gathered into one sticky bit.
Value* int64_to_f64_sticky(MathContext& context, Value* x, bool is_signed) {
  auto& b = context.builder;
  llvm::Type* type = x->getType();
  llvm::Type* f64 = like(b.getDoubleTy(), x);
  auto number = [&](uint64_t bits) { return int_constant(type, bits); };
  auto to_double = [&](Value* v) {
    return is_signed ? b.CreateSIToFP(v, f64) : b.CreateUIToFP(v, f64);
  };
  Value* lost = b.CreateICmpNE(b.CreateAnd(x, number(0x7ff)), number(0));
  Value* high = is_signed ? b.CreateAShr(x, 11) : b.CreateLShr(x, 11);
  high = b.CreateOr(high, b.CreateZExt(lost, type));
  Value* large = b.CreateFMul(to_double(high), float_constant(f64, 2048));
  // |x| < 2^53, tested without a branch on the sign: x + 2^53 < 2^54 as unsigned numbers.
  Value* shifted = is_signed ? b.CreateAdd(x, number(uint64_t{1} << 53)) : x;
  Value* exact = b.CreateICmpULT(shifted, number(uint64_t{1} << (is_signed ? 54 : 53)));
  return b.CreateSelect(exact, to_double(x), large);
}

Value* int_to_float(MathContext& context, Type from, Type to, Value* x) {
  auto& b = context.builder;
  bool wide = tensor::type_bits(from) == 64;
  auto direct = [&](llvm::Type* type) {
    return is_signed(from) ? b.CreateSIToFP(x, like(type, x)) : b.CreateUIToFP(x, like(type, x));
  };
  if (to == Type::f32) return direct(b.getFloatTy());
  if (to == Type::f64) return direct(b.getDoubleTy());
  if (tensor::type_bits(from) <= 16) return f32_to_small(context, to, direct(b.getFloatTy()));
  Value* real = wide ? int64_to_f64_sticky(context, x, is_signed(from)) : direct(b.getDoubleTy());
  return f32_to_small(context, to, f64_to_f32_odd(context, real));
}

// `x`: float or double.
Value* float_to_int(MathContext& context, Type to, Value* x) {
  auto& b = context.builder;
  llvm::Type* real = x->getType();
  int width = tensor::type_bits(to);
  bool negative = is_signed(to);
  int significant = real->getScalarType()->isFloatTy() ? 24 : 53;
  int value_bits = negative ? width - 1 : width;
  auto number = [&](double value) { return float_constant(real, value); };
  double low = negative ? -std::ldexp(1.0, value_bits) : 0;
  Value* clamped = b.CreateSelect(b.CreateFCmpOGT(x, number(low)), x, number(low));  // NaN: low
  bool top_fits = value_bits <= significant;
  if (top_fits) {
    Value* high = number(std::ldexp(1.0, value_bits) - 1);
    clamped = b.CreateSelect(b.CreateFCmpOLT(clamped, high), clamped, high);
  }
  // Narrow integers are converted through 32-bit ones: processors have only that conversion.
  llvm::Type* made = like(b.getIntNTy(static_cast<unsigned>(std::max(width, 32))), x);
  bool as_signed = negative || width < 32;
  Value* result = as_signed ? b.CreateFPToSI(clamped, made) : b.CreateFPToUI(clamped, made);
  if (!top_fits) {
    Value* over = b.CreateFCmpOGE(x, number(std::ldexp(1.0, value_bits)));
    uint64_t largest = ~uint64_t{0} >> (64 - value_bits);
    result = b.CreateSelect(over, int_constant(made, largest), result);
  }
  if (negative) {
    result = b.CreateSelect(b.CreateFCmpUNO(x, x), int_constant(made, 0), result);
  }
  return b.CreateTrunc(result, like(b.getIntNTy(static_cast<unsigned>(width)), x));
}

Value* int_to_int(MathContext& context, Type from, Type to, Value* x) {
  auto& b = context.builder;
  llvm::Type* type = like(value_type(b.getContext(), to), x);
  return is_signed(from) ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}

Value* float_to_float(MathContext& context, Type from, Type to, Value* x) {
  auto& b = context.builder;
  if (from == Type::f64) {
    if (to == Type::f32) return b.CreateFPTrunc(x, like(b.getFloatTy(), x));
    return f32_to_small(context, to, f64_to_f32_odd(context, x));
  }
  if (is_small_float(from)) x = small_to_f32(context, from, x);
  if (to == Type::f32) return x;
  if (to == Type::f64) return b.CreateFPExt(x, like(b.getDoubleTy(), x));
  return f32_to_small(context, to, x);
}

}  // namespace

Value* emit_convert(MathContext& context, Type from, Type to, Value* x) {
  auto& b = context.builder;
  if (from == to) return x;
  if (tensor::is_float(from) && tensor::is_float(to)) {
    return float_to_float(context, from, to, x);
  }
  if (tensor::is_float(from)) {
    if (is_small_float(from)) x = small_to_f32(context, from, x);
    if (to == Type::pred) return b.CreateFCmpUNE(x, float_constant(x->getType(), 0));
    return float_to_int(context, to, x);
  }
  if (to == Type::pred) return b.CreateICmpNE(x, int_constant(x->getType(), 0));
  if (tensor::is_float(to)) return int_to_float(context, from, to, x);
  return int_to_int(context, from, to, x);
}

}  // namespace heddle::emit
