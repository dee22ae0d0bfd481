// Conversions of f32 to integers of 8 and 16 bits, for quantised values: they saturate, so that
// clamps to the type's range are omitted; and a rounding before them is done by the processor's
// conversion (to nearest, ties to even, as always).
#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <cmath>
#include <optional>

#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {

using kernel::Op;
using llvm::Value;

namespace {

struct Span {
  double low, high;
};

// Nullopt: another type.
std::optional<Span> span_of(Type type) {
  const int bits = tensor::type_bits(type);
  if (tensor::is_float(type) || (bits != 8 && bits != 16)) return std::nullopt;
  if (tensor::is_signed_integer(type))
    return Span{-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
  return Span{0, std::ldexp(1.0, bits) - 1};
}

std::optional<double> f32_constant(const kernel::Expr& expr) {
  if (expr.op != Op::constant || expr.type != Type::f32) return std::nullopt;
  return std::bit_cast<float>(static_cast<uint32_t>(expr.imm));
}

// The intrinsic from f32 to s32, rounded to nearest, in this many lanes; 0: none.
unsigned conversion_of(int lanes, const Isa& isa) {
  if (lanes == 16 && isa.avx512) return llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512;
  if (lanes == 8 && isa.avx) return llvm::Intrinsic::x86_avx_cvt_ps2dq_256;
  if (lanes == 4) return llvm::Intrinsic::x86_sse2_cvtps2dq;
  return 0;
}

// q + added, saturated; q is INT_MIN for NaN and for values that are too small, and bounded above.
// NaN gives 0. Signed types have an instruction that narrows and saturates on both sides.
Value* saturated(llvm::IRBuilder<>& b, Value* q, Value* x, Span span, double added) {
  const auto number = [&](double value) {
    return int_constant(q->getType(), static_cast<uint64_t>(static_cast<int64_t>(value)));
  };
  const auto at_least = [&](Value* low) { return b.CreateSelect(b.CreateICmpSGT(q, low), q, low); };
  if (added < 0) q = at_least(number(span.low - added));  // INT_MIN would wrap
  if (added != 0) q = b.CreateAdd(q, number(added));
  if (span.low >= 0) return at_least(number(span.low));
  q = b.CreateSelect(b.CreateFCmpUNO(x, x), number(0), q);
  q = at_least(number(span.low));
  return b.CreateSelect(b.CreateICmpSLT(q, number(span.high)), q, number(span.high));
}

}  // namespace

// The value without clamps that a conversion to `to` makes redundant; they pass NaN.
kernel::ExprId KernelEmitter::unclamped(ExprId x, Type to) const {
  const std::optional<Span> span = span_of(to);
  for (bool found = span.has_value(); found;) {
    found = false;
    const Expr& expr = kernel_.expr(x);
    if ((expr.op != Op::min && expr.op != Op::max) || expr.type != Type::f32) break;
    for (size_t side : {size_t{0}, size_t{1}}) {
      const std::optional<double> bound = f32_constant(kernel_.expr(expr.operands[side]));
      if (!bound || !(expr.op == Op::min ? *bound >= span->high : *bound <= span->low)) continue;
      x = expr.operands[1 - side];
      found = true;
      break;
    }
  }
  return x;
}

// Converts round_even(y), or that plus an integer constant, in lanes; nullopt: `x` has another
// form, or no instruction converts vectors of this width.
std::optional<Val> KernelEmitter::rounded_conversion(ExprId x, Type to) {
  const std::optional<Span> span = span_of(to);
  const unsigned intrinsic = conversion_of(lanes_, isa_);
  if (!span || intrinsic == 0 || kernel_.expr(x).type != Type::f32) return std::nullopt;
  double added = 0;
  if (const Expr& sum = kernel_.expr(x); sum.op == Op::add)
    for (size_t side : {size_t{0}, size_t{1}})
      if (const std::optional<double> number = f32_constant(kernel_.expr(sum.operands[side]));
          number && std::abs(*number) <= span->high && *number == std::trunc(*number)) {
        added = *number;
        x = sum.operands[1 - side];
        break;
      }
  if (kernel_.expr(x).op != Op::round_even) return std::nullopt;
  const Val y = eval(kernel_.expr(x).operands[0]);
  if (!y.varying) return std::nullopt;
  Val result = join({&y});
  result.varying = true;
  result.bounds = Bounds::of(to);
  At at(*this, result.level);
  Value* v = operand(y, Type::f32, true);
  Value* high = float_constant(v->getType(), span->high - added);
  Value* below = b_.CreateSelect(b_.CreateFCmpOLT(high, v), high, v);  // NaN stays
  llvm::Type* whole = like(b_.getInt32Ty(), v);
  std::vector<Value*> arguments{below};
  if (lanes_ == 16)  // no mask, the current rounding
    arguments.insert(arguments.end(),
                     {llvm::Constant::getNullValue(whole), b_.getInt16(0xffff), b_.getInt32(4)});
  Value* q = b_.CreateCall(llvm::Intrinsic::getDeclaration(&module_, intrinsic), arguments);
  q = saturated(b_, q, v, *span, added);
  result.v = b_.CreateTrunc(q, like(value_type(b_.getContext(), to), v));
  return result;
}

}  // namespace heddle::emit
