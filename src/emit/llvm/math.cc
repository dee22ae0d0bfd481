#include "emit/llvm/math.h"

#include "base/check.h"
#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_shared.h"

namespace heddle::emit {

using kernel::Op;
using llvm::Value;

namespace {

// The functions that are written for double; float goes there and back, and is rounded right but
// for ties that double cannot tell. Long ones are calls.
Value* by_double(MathContext& context, const char* name, Value* x,
                 Value* (*function)(const MathKit&, Value*)) {
  auto& b = context.builder;
  bool wide = x->getType()->getScalarType()->isDoubleTy();
  Value* in = wide ? x : b.CreateFPExt(x, like(b.getDoubleTy(), x));
  Value* out = call_shared(context, name, in->getType(), {in},
                           [&](const MathKit& k, llvm::ArrayRef<Value*> arguments) {
                             return function(k, arguments[0]);
                           });
  return wide ? out : b.CreateFPTrunc(out, x->getType());
}

}  // namespace

Value* emit_math(MathContext& context, Op op, Value* x) {
  MathKit k(context, x);
  switch (op) {
    case Op::rsqrt:
      return math_rsqrt(k, x);
    case Op::exp:
      return math_exp(k, x);
    case Op::expm1:
      return math_expm1(k, x);
    case Op::log:
      return math_log(k, x);
    case Op::log1p:
      return math_log1p(k, x);
    case Op::tanh:
      return math_tanh(k, x);
    case Op::logistic:
      return math_logistic(k, x);
    case Op::erf:
      return math_erf(k, x);
    case Op::exp_fast:
      return k.is_double() ? math_exp(k, x) : math_exp_fast(k, x);
    case Op::tanh_fast:
      return k.is_double() ? math_tanh(k, x) : math_tanh_fast(k, x);
    case Op::logistic_fast:
      return k.is_double() ? math_logistic(k, x) : math_logistic_fast(k, x);
    case Op::erf_fast:
      return k.is_double() ? math_erf(k, x) : math_erf_fast(k, x);
    case Op::sin:
      return by_double(context, "heddle_sin", x, math_sin);
    case Op::cos:
      return by_double(context, "heddle_cos", x, math_cos);
    case Op::tan:
      return by_double(context, "heddle_tan", x, math_tan);
    case Op::asin:
      return by_double(context, "heddle_asin", x, math_asin);
    case Op::acos:
      return by_double(context, "heddle_acos", x, math_acos);
    case Op::sinh:
      return by_double(context, "heddle_sinh", x, math_sinh);
    case Op::cosh:
      return by_double(context, "heddle_cosh", x, math_cosh);
    case Op::asinh:
      return by_double(context, "heddle_asinh", x, math_asinh);
    case Op::acosh:
      return by_double(context, "heddle_acosh", x, math_acosh);
    case Op::atanh:
      return by_double(context, "heddle_atanh", x, math_atanh);
    case Op::cbrt:
      return by_double(context, "heddle_cbrt", x, math_cbrt);
    default:
      HEDDLE_UNREACHABLE("{}", kernel::op_text(op));
  }
}

Value* emit_math(MathContext& context, Op op, Value* x, Value* y) {
  auto& b = context.builder;
  bool wide = x->getType()->getScalarType()->isDoubleTy();
  auto widen = [&](Value* v) { return wide ? v : b.CreateFPExt(v, like(b.getDoubleTy(), v)); };
  Value* arguments[] = {widen(x), widen(y)};
  bool pow = op == Op::pow;
  HEDDLE_CHECK(pow || op == Op::atan2);
  Value* out = call_shared(context, pow ? "heddle_pow" : "heddle_atan2", arguments[0]->getType(),
                           arguments, [&](const MathKit& k, llvm::ArrayRef<Value*> in) {
                             return pow ? math_pow(k, in[0], in[1]) : math_atan2(k, in[0], in[1]);
                           });
  return wide ? out : b.CreateFPTrunc(out, x->getType());
}

}  // namespace heddle::emit
