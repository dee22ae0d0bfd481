#include "emit/llvm/arith.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "base/check.h"
#include "emit/llvm/fmod.h"
#include "emit/llvm/soft_fma.h"
#include "kernel/scalar.h"

namespace heddle::emit {
namespace {

using kernel::Op;
using llvm::Value;
namespace intrin = llvm::Intrinsic;

bool known_not_nan(Value* x) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(x);
  if (!constant) return false;
  if (auto* splat = constant->getType()->isVectorTy() ? constant->getSplatValue() : constant) {
    auto* real = llvm::dyn_cast<llvm::ConstantFP>(splat);
    return real && !real->isNaN();
  }
  return false;
}

// max and min give NaN if either side is NaN. The instruction gives its second operand if either is
// NaN; so an operand that cannot be NaN goes first and nothing else is needed. Else the right one,
// which by convention is not the accumulator, goes first and is tested.
Value* float_extreme(llvm::IRBuilder<>& b, bool max, Value* x, Value* y) {
  auto pick = [&](Value* first, Value* second) {
    Value* better = max ? b.CreateFCmpOGT(first, second) : b.CreateFCmpOLT(first, second);
    return b.CreateSelect(better, first, second);
  };
  if (known_not_nan(x)) return pick(x, y);
  if (known_not_nan(y)) return pick(y, x);
  return b.CreateSelect(b.CreateFCmpUNO(y, y), y, pick(y, x));
}

Value* float_binary(MathContext& context, Op op, Value* x, Value* y) {
  auto& b = context.builder;
  switch (op) {
    case Op::add:
      return b.CreateFAdd(x, y);
    case Op::sub:
      return b.CreateFSub(x, y);
    case Op::mul:
      return b.CreateFMul(x, y);
    case Op::div:
      return b.CreateFDiv(x, y);
    case Op::rem:
      return emit_fmod(context, x, y);
    case Op::min:
      return float_extreme(b, false, x, y);
    case Op::max:
      return float_extreme(b, true, x, y);
    case Op::eq:
      return b.CreateFCmpOEQ(x, y);
    case Op::ne:
      return b.CreateFCmpUNE(x, y);
    case Op::lt:
      return b.CreateFCmpOLT(x, y);
    case Op::le:
      return b.CreateFCmpOLE(x, y);
    case Op::gt:
      return b.CreateFCmpOGT(x, y);
    case Op::ge:
      return b.CreateFCmpOGE(x, y);
    default:
      HEDDLE_UNREACHABLE("{}", kernel::op_text(op));
  }
}

// Division that cannot trap: the divisor is replaced where the processor would trap, and the
// results that kernel.h defines are selected. All this folds away for a constant divisor.
Value* divide(MathContext& context, Op op, bool is_signed, Value* x, Value* y, Facts facts) {
  auto& b = context.builder;
  llvm::Type* type = x->getType();
  Value *zero = int_constant(type, 0), *one = int_constant(type, 1),
        *minus_one = int_constant(type, ~uint64_t{0});
  bool quotient = op == Op::div || op == Op::floor_div;
  bool floors = op == Op::floor_div || op == Op::floor_mod;
  bool no_sign = !is_signed || (facts.left_not_negative && facts.right_positive);
  Value* is_zero = b.CreateICmpEQ(y, zero);
  Value* is_minus_one = no_sign ? b.getFalse() : b.CreateICmpEQ(y, minus_one);
  // Facts hold only where the value is used; the divisor is still made safe, for speculation.
  Value* safe = b.CreateSelect(is_zero, one, y);
  if (no_sign) {
    Value* q = quotient ? b.CreateUDiv(x, safe) : b.CreateURem(x, safe);
    return b.CreateSelect(is_zero, quotient ? minus_one : x, q);
  }
  safe = b.CreateSelect(is_minus_one, one, safe);
  Value *q, *r = nullptr;
  if (quotient) q = b.CreateSDiv(x, safe);
  if (!quotient || floors) r = b.CreateSRem(x, safe);
  if (floors) {
    Value* down = b.CreateAnd(b.CreateICmpNE(r, zero), b.CreateICmpSLT(b.CreateXor(r, safe), zero));
    if (quotient) {
      q = b.CreateSub(q, b.CreateZExt(down, type));
    } else {
      r = b.CreateSelect(down, b.CreateAdd(r, safe), r);
    }
  }
  if (quotient) {
    q = b.CreateSelect(is_minus_one, b.CreateNeg(x), q);
    return b.CreateSelect(is_zero, minus_one, q);
  }
  r = b.CreateSelect(is_minus_one, zero, r);
  return b.CreateSelect(is_zero, x, r);
}

// Floor division by a positive constant power of two is a shift or a mask, whatever the sign.
Value* floor_by_power(llvm::IRBuilder<>& b, Op op, bool is_signed, Value* x, Value* y) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(y);
  if (!constant || (op != Op::floor_div && op != Op::floor_mod)) return nullptr;
  Value* splat = y->getType()->isVectorTy() ? constant->getSplatValue() : constant;
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(splat);
  if (!number || !number->getValue().isPowerOf2()) return nullptr;
  if (is_signed && number->getValue().isNegative()) return nullptr;
  if (op == Op::floor_mod) return b.CreateAnd(x, b.CreateSub(y, int_constant(y->getType(), 1)));
  unsigned shift = number->getValue().logBase2();
  return is_signed ? b.CreateAShr(x, shift) : b.CreateLShr(x, shift);
}

Value* shift(llvm::IRBuilder<>& b, Op op, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  unsigned width = type->getScalarSizeInBits();
  Value* over = b.CreateICmpUGE(y, int_constant(type, width));
  Value* last = int_constant(type, width - 1);
  Value* amount = b.CreateSelect(over, last, y);
  if (op == Op::shr_arithmetic) return b.CreateAShr(x, amount);
  Value* result = op == Op::shl ? b.CreateShl(x, amount) : b.CreateLShr(x, amount);
  return b.CreateSelect(over, int_constant(type, 0), result);
}

Value* mulhi(llvm::IRBuilder<>& b, bool is_signed, Value* x, Value* y) {
  unsigned width = x->getType()->getScalarSizeInBits();
  llvm::Type* wide = like(b.getIntNTy(2 * width), x);
  auto extend = [&](Value* v) { return is_signed ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide); };
  Value* product = b.CreateMul(extend(x), extend(y));
  return b.CreateTrunc(b.CreateLShr(product, width), x->getType());
}

Value* int_binary(MathContext& context, Op op, bool is_signed, Value* x, Value* y, Facts facts) {
  auto& b = context.builder;
  auto compare = [&](llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u) {
    return b.CreateICmp(is_signed ? s : u, x, y);
  };
  auto less = [&] { return compare(llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT); };
  auto greater = [&] { return compare(llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT); };
  switch (op) {
    case Op::add:
      return b.CreateAdd(x, y);
    case Op::sub:
      return b.CreateSub(x, y);
    case Op::mul:
      return b.CreateMul(x, y);
    case Op::div:
    case Op::rem:
    case Op::floor_div:
    case Op::floor_mod:
      if (Value* cheap = floor_by_power(b, op, is_signed, x, y)) return cheap;
      return divide(context, op, is_signed, x, y, facts);
    case Op::min:
      return b.CreateSelect(less(), x, y);
    case Op::max:
      return b.CreateSelect(greater(), x, y);
    case Op::and_:
      return b.CreateAnd(x, y);
    case Op::or_:
      return b.CreateOr(x, y);
    case Op::xor_:
      return b.CreateXor(x, y);
    case Op::shl:
    case Op::shr_arithmetic:
    case Op::shr_logical:
      return shift(b, op, x, y);
    case Op::mulhi:
      return mulhi(b, is_signed, x, y);
    case Op::eq:
      return b.CreateICmpEQ(x, y);
    case Op::ne:
      return b.CreateICmpNE(x, y);
    case Op::lt:
      return less();
    case Op::gt:
      return greater();
    case Op::le:
      return compare(llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE);
    case Op::ge:
      return compare(llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE);
    default:
      HEDDLE_UNREACHABLE("{}", kernel::op_text(op));
  }
}

Value* float_unary(MathContext& context, Op op, Value* x) {
  auto& b = context.builder;
  Value* zero = float_constant(x->getType(), 0);
  switch (op) {
    case Op::neg:
      return b.CreateFNeg(x);
    case Op::abs:
      return intrinsic(b, intrin::fabs, {x});
    case Op::sign: {  // NaN and zeros stay
      Value* one = intrinsic(b, intrin::copysign, {float_constant(x->getType(), 1), x});
      return b.CreateSelect(b.CreateFCmpONE(x, zero), one, x);
    }
    case Op::floor:
      return intrinsic(b, intrin::floor, {x});
    case Op::ceil:
      return intrinsic(b, intrin::ceil, {x});
    case Op::round_even:
      return intrinsic(b, intrin::roundeven, {x});
    case Op::round_away:
      return intrinsic(b, intrin::round, {x});
    case Op::sqrt:
      return intrinsic(b, intrin::sqrt, {x});
    case Op::is_finite: {
      double infinity = std::numeric_limits<double>::infinity();
      return b.CreateFCmpOLT(intrinsic(b, intrin::fabs, {x}),
                             float_constant(x->getType(), infinity));
    }
    default:
      HEDDLE_UNREACHABLE("{}", kernel::op_text(op));
  }
}

Value* int_unary(MathContext& context, Op op, bool is_signed, Value* x) {
  auto& b = context.builder;
  Value* zero = int_constant(x->getType(), 0);
  switch (op) {
    case Op::neg:
      return b.CreateNeg(x);
    case Op::abs:
      if (!is_signed) return x;
      return b.CreateSelect(b.CreateICmpSLT(x, zero), b.CreateNeg(x), x);
    case Op::sign: {
      Value* positive = b.CreateZExt(is_signed ? b.CreateICmpSGT(x, zero) : b.CreateICmpNE(x, zero),
                                     x->getType());
      if (!is_signed) return positive;
      return b.CreateOr(positive, b.CreateSExt(b.CreateICmpSLT(x, zero), x->getType()));
    }
    case Op::not_:
      return b.CreateNot(x);
    case Op::popcnt:
      return intrinsic(b, intrin::ctpop, {x});
    case Op::clz:
      return intrinsic(b, intrin::ctlz, {x, b.getFalse()});
    default:
      HEDDLE_UNREACHABLE("{}", kernel::op_text(op));
  }
}

}  // namespace

Value* emit_unary(MathContext& context, Op op, Type type, Value* x) {
  if (tensor::is_float(type)) return float_unary(context, op, x);
  return int_unary(context, op, tensor::is_signed_integer(type), x);
}

Value* emit_binary(MathContext& context, Op op, Type type, Value* x, Value* y, Facts facts) {
  if (tensor::is_float(type)) return float_binary(context, op, x, y);
  return int_binary(context, op, tensor::is_signed_integer(type), x, y, facts);
}

Value* emit_fma(MathContext& context, Value* x, Value* y, Value* z) {
  if (!context.isa.fma) return emit_soft_fma(context, x, y, z);
  return intrinsic(context.builder, intrin::fma, {x, y, z});
}

}  // namespace heddle::emit
