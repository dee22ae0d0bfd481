#include "emit/llvm/math.h"

#include "base/check.h"
#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_shared.h"
#include "kernel/op_info.h"

namespace heddle::emit {

using kernel::Op;
using kernel::OpClass;
using llvm::Value;

namespace {

using Unary = Value* (*)(const MathKit&, Value*);
using Binary = Value* (*)(const MathKit&, Value*, Value*);

struct Function {
  const char* name;
  Unary unary = nullptr;
  Binary binary = nullptr;
};

// By operator: `math_<operator>`, so that a missing function is a link error.
constexpr Function kFunctions[] = {
#define HEDDLE_MATH_plain(name) {nullptr},
#define HEDDLE_MATH_inlined(name) {"heddle_" #name, math_##name},
#define HEDDLE_MATH_shared(name) {"heddle_" #name, math_##name},
#define HEDDLE_MATH_fast(name) {"heddle_" #name, math_##name},
#define HEDDLE_MATH_binary(name) {"heddle_" #name, nullptr, math_##name},
#define HEDDLE_KERNEL_OP(name, operands, types, op_class, ...) HEDDLE_MATH_##op_class(name)
#include "kernel/ops.def"
};

const Function& function_of(Op op) { return kFunctions[static_cast<size_t>(op)]; }

bool is_double(const Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

Value* widened(MathContext& context, Value* x) {
  auto& b = context.builder;
  return is_double(x) ? x : b.CreateFPExt(x, like(b.getDoubleTy(), x));
}

// Calls a function that is written for double; float is converted to double and back, and correctly
// rounded except for ties that double cannot distinguish.
Value* by_double(MathContext& context, const Function& function, std::initializer_list<Value*> x) {
  std::vector<Value*> in;
  for (Value* one : x) in.push_back(widened(context, one));
  Value* out = call_shared(context, function.name, in[0]->getType(), in,
                           [&](const MathKit& k, llvm::ArrayRef<Value*> arguments) {
                             return function.unary ? function.unary(k, arguments[0])
                                                   : function.binary(k, arguments[0], arguments[1]);
                           });
  Value* first = *x.begin();
  return is_double(first) ? out : context.builder.CreateFPTrunc(out, first->getType());
}

}  // namespace

Value* emit_math(MathContext& context, Op op, Value* x) {
  MathKit k(context, x);
  if (kernel::op_class(op) == OpClass::fast && k.is_double()) op = *kernel::exact_form(op);
  const Function& function = function_of(op);
  HEDDLE_CHECK(function.unary, "{}", kernel::op_text(op));
  if (kernel::op_class(op) == OpClass::shared) return by_double(context, function, {x});
  return function.unary(k, x);
}

Value* emit_math(MathContext& context, Op op, Value* x, Value* y) {
  const Function& function = function_of(op);
  HEDDLE_CHECK(function.binary, "{}", kernel::op_text(op));
  return by_double(context, function, {x, y});
}

}  // namespace heddle::emit
