#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "emit/llvm/convert.h"
#include "emit/llvm/kernel_emitter.h"
#include "emit/llvm/masks.h"
#include "kernel/op_info.h"

namespace heddle::emit {

using llvm::Value;

namespace {

constexpr int kMaxDepth = 1000;                // of recursion
constexpr int kStep = 64;                      // heights at which a deep expression is cut
constexpr int64_t kMaxDim = int64_t{1} << 48;  // a run-time extent is below this

}  // namespace

Val KernelEmitter::eval(ExprId id) {
  if (const Val* known = find(id)) return *known;
  const Expr& expr = kernel_.expr(id);
  if (depth_ >= kMaxDepth) {
    fail("an expression nests more than {} deep", kMaxDepth);
    return poison(expr.type);
  }
  ++depth_;
  if (heights_[id.index()] > 2 * kStep && depth_ == 1) eval_below(id);
  Val result = compute(expr);
  --depth_;
  remember(id, result);
  return result;
}

// Evaluates nodes at some heights, lowest first (ids ascend with heights). Not below lane(), where
// other lanes may run.
void KernelEmitter::eval_below(ExprId id) {
  std::vector<ExprId> stack = {id}, cuts;
  std::unordered_map<uint32_t, bool> seen;
  while (!stack.empty()) {
    ExprId next = stack.back();
    stack.pop_back();
    const Expr& expr = kernel_.expr(next);
    if (expr.op == Op::lane || heights_[next.index()] < kStep) continue;
    if (!seen.emplace(next.value, true).second) continue;
    if (next != id && heights_[next.index()] % kStep == 0) cuts.push_back(next);
    stack.insert(stack.end(), expr.operands.begin(), expr.operands.end());
  }
  std::sort(cuts.begin(), cuts.end());
  for (ExprId cut : cuts) eval(cut);
}

Val KernelEmitter::compute(const Expr& expr) {
  switch (expr.op) {
    case Op::constant:
      return constant(expr.type, expr.imm);
    case Op::var:
      return variable(expr);
    case Op::dim:
      return dimension(expr.imm);
    case Op::load:
      return load(expr);
    case Op::convert:
      return conversion(expr);
    case Op::bitcast:
      return bitcast(expr);
    case Op::select:
      return selection(expr);
    case Op::lane:
      return lane(expr);
    case Op::shuffle_xor:
      return shuffle(expr);
    case Op::dot:
      return dot(expr);
    default:
      break;
  }
  Type type = kernel_.expr(expr.operands[0]).type;
  return tensor::is_float(type) ? floating(expr) : integer(expr);
}

// A value to go on with after an error.
Val KernelEmitter::poison(Type type) {
  Val result;
  result.v = llvm::PoisonValue::get(value_type(b_.getContext(), type));
  result.level = top();
  result.pinned = true;
  return result;
}

Val KernelEmitter::constant(Type type, int64_t bits) const {
  Val result;
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* llvm_type = value_type(context, type);
  if (type == Type::f32) {
    result.v = llvm::ConstantFP::get(
        context, llvm::APFloat(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  } else if (type == Type::f64) {
    result.v = llvm::ConstantFP::get(context, llvm::APFloat(std::bit_cast<double>(bits)));
  } else {
    result.v = int_constant(llvm_type, static_cast<uint64_t>(bits));
  }
  if (!tensor::is_float(type) && type != Type::u64) {
    result.bounds = Bounds::exactly(bits);
    result.multiple = bits == INT64_MIN ? int64_t{1} << 62 : std::abs(bits);
  }
  return result;
}

Val KernelEmitter::variable(const Expr& expr) {
  const Binding& binding = bindings_[expr.var.index()];
  switch (binding.kind) {
    case Binding::Kind::constant: {
      Val result = constant(Type::s64, binding.offset);
      result.level = binding.level;  // another copy has another number
      return result;
    }
    case Binding::Kind::loop: {
      Val offset = constant(Type::s64, binding.offset), result = binding.base;
      result.level = binding.level;
      if (binding.offset == 0) return result;
      At at(*this, result.level);
      result.v = b_.CreateAdd(binding.base.v, offset.v);
      result.multiple = std::gcd(binding.base.multiple, offset.multiple);
      return result;
    }
    case Binding::Kind::expression:
      return eval(binding.expression);
    case Binding::Kind::value:
      return binding.base;
    case Binding::Kind::none:
      break;
  }
  fail("variable {} has no value here", kernel_.var(expr.var).name);
  return poison(expr.type);
}

Val KernelEmitter::dimension(int64_t which) {
  Val& result = dims_[static_cast<size_t>(which)];
  if (result.v) return result;
  At at(*this, 0);
  Value* pointer =
      b_.CreateConstGEP1_64(b_.getInt64Ty(), function_->getArg(1), static_cast<uint64_t>(which));
  result.v = b_.CreateLoad(b_.getInt64Ty(), pointer);
  result.bounds = {0, kMaxDim};
  return result;
}

Value* KernelEmitter::vector(const Val& x, llvm::Type* element) {
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes_));
  if (x.varying) {
    if (x.v->getType() == type) return x.v;
    At at(*this, x.level);  // a narrow s64
    return b_.CreateSExtOrTrunc(x.v, type);
  }
  Value*& result = scopes_[static_cast<size_t>(x.level)].vectors[{x.v, x.stride, type}];
  if (result) return result;
  At at(*this, x.level);
  Value* scalar = x.v->getType() == element ? x.v : b_.CreateTrunc(x.v, element);
  Value* splat = b_.CreateVectorSplat(static_cast<unsigned>(lanes_), scalar);
  if (x.stride != 0) {
    std::vector<llvm::Constant*> steps;
    for (int i = 0; i < lanes_; ++i) {
      steps.push_back(
          int_constant(element, static_cast<uint64_t>(x.stride) * static_cast<uint64_t>(i)));
    }
    splat = b_.CreateAdd(splat, llvm::ConstantVector::get(steps));
  }
  return result = splat;
}

Value* KernelEmitter::operand(const Val& x, Type type, bool as_vector, bool narrow) {
  if (!as_vector) return x.v;
  return vector(x, narrow ? b_.getInt32Ty() : value_type(b_.getContext(), type));
}

Val KernelEmitter::conversion(const Expr& expr) {
  Type from = kernel_.expr(expr.operands[0]).type, to = expr.type;
  const ExprId source = unclamped(expr.operands[0], to);
  if (const std::optional<Val> made = rounded_conversion(source, to)) return *made;
  Val x = eval(source);
  if (from == to) return x;
  Val result = join({&x});
  result.varying = !x.uniform();
  bool integers = !tensor::is_float(from) && !tensor::is_float(to);
  result.bounds = Bounds::of(to);
  if (integers && x.bounds.within(result.bounds) && from != Type::u64 && to != Type::u64) {
    result.bounds = x.bounds;
    if (to != Type::pred && from != Type::pred) result.multiple = x.multiple;
  }
  At at(*this, result.level);
  bool narrow = result.varying && from == Type::s64 && x.bounds.fits_s32();
  Value* v = operand(x, from, result.varying, narrow);
  // A varying s64 that fits stays in 32 bits.
  bool narrow_result = result.varying && to == Type::s64 && result.bounds.fits_s32() && integers;
  result.v = emit_convert(math_, narrow ? Type::s32 : from, narrow_result ? Type::s32 : to, v);
  return result;
}

Val KernelEmitter::bitcast(const Expr& expr) {
  Type from = kernel_.expr(expr.operands[0]).type;
  Val x = eval(expr.operands[0]);
  Val result = join({&x});
  result.varying = !x.uniform();
  result.bounds = Bounds::of(expr.type);
  At at(*this, result.level);
  Value* v = operand(x, from, result.varying);
  result.v = b_.CreateBitCast(v, like(value_type(b_.getContext(), expr.type), v));
  return result;
}

Val KernelEmitter::selection(const Expr& expr) {
  Val condition = eval(expr.operands[0]);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition.v)) {
    Val chosen = eval(expr.operands[known->isZero() ? 2 : 1]);
    chosen.level = std::max(chosen.level, condition.level);
    return chosen;
  }
  Val yes = eval(expr.operands[1]), no = eval(expr.operands[2]);
  Val result = join({&condition, &yes, &no});
  result.varying = !condition.uniform() || !yes.uniform() || !no.uniform();
  result.bounds = unite(yes.bounds, no.bounds);
  if (!result.varying) result.multiple = std::gcd(yes.multiple, no.multiple);
  bool narrow = result.varying && expr.type == Type::s64 && result.bounds.fits_s32();
  At at(*this, result.level);
  Value* a = operand(yes, expr.type, result.varying, narrow);
  Value* b = operand(no, expr.type, result.varying, narrow);
  // A uniform condition chooses between whole vectors.
  Value* c = condition.uniform() ? condition.v : vector(condition, b_.getInt1Ty());
  result.v = b_.CreateSelect(c, a, b);
  return result;
}

// The number of lanes of the lane registers that an expression reads; 0: none.
int KernelEmitter::lanes_read(ExprId id) const {
  std::vector<ExprId> stack = {id};
  std::unordered_map<uint32_t, bool> seen;
  while (!stack.empty()) {
    ExprId next = stack.back();
    stack.pop_back();
    if (!seen.emplace(next.value, true).second) continue;
    const Expr& expr = kernel_.expr(next);
    if (expr.op == Op::load) {
      const kernel::Buffer& buffer = kernel_.buffer(expr.buffer);
      if (buffer.space == kernel::Space::reg && buffer.lanes > 0) return buffer.lanes;
    }
    stack.insert(stack.end(), expr.operands.begin(), expr.operands.end());
  }
  return 0;
}

Val KernelEmitter::lane(const Expr& expr) {
  int outer = lanes_;
  if (lanes_ == 0) lanes_ = lanes_read(expr.operands[0]);
  int lanes = lanes_;
  Val x = eval(expr.operands[0]);
  lanes_ = outer;
  Val result = join({&x});
  result.bounds = x.bounds;
  if (x.uniform()) {
    result.v = x.v;
    return result;
  }
  if (expr.imm < 0 || expr.imm >= lanes) {
    fail("lane {} of {} lanes", expr.imm, lanes);
    return poison(expr.type);
  }
  At at(*this, result.level);
  if (x.varying) {
    result.v = b_.CreateExtractElement(x.v, static_cast<uint64_t>(expr.imm));
    if (expr.type == Type::s64) result.v = b_.CreateSExt(result.v, b_.getInt64Ty());
  } else {
    uint64_t offset = static_cast<uint64_t>(x.stride) * static_cast<uint64_t>(expr.imm);
    result.v = b_.CreateAdd(x.v, b_.getInt64(offset));
  }
  return result;
}

Val KernelEmitter::shuffle(const Expr& expr) {
  Val x = eval(expr.operands[0]);
  if (x.uniform()) return x;
  int lanes = lanes_;
  if (expr.imm < 0 || expr.imm >= lanes || (lanes & (lanes - 1)) != 0) {
    fail("shuffle_xor by {} of {} lanes", expr.imm, lanes);
    return poison(expr.type);
  }
  Val result = join({&x});
  result.varying = true;
  result.bounds = x.bounds;
  At at(*this, result.level);
  Value* v = x.varying ? x.v : vector(x, x.bounds.fits_s32() ? b_.getInt32Ty() : b_.getInt64Ty());
  std::vector<int> from;
  for (int i = 0; i < lanes; ++i) from.push_back(i ^ static_cast<int>(expr.imm));
  result.v = b_.CreateShuffleVector(v, from);
  return result;
}

// Divides by one in lanes that a constant mask turns off. LLVM knows that loads there give zero,
// folds zero by zero to zero, and drops the select that keeps the NaN out of a register.
static Value* divisor(llvm::IRBuilder<>& b, Value* y, Value* mask) {
  if (all_true(mask) || !llvm::isa<llvm::Constant>(mask)) return y;
  return b.CreateSelect(mask, y, llvm::ConstantFP::get(y->getType(), 1.0));
}

// Operators on floats (comparisons and functions among them).
Val KernelEmitter::floating(const Expr& expr) {
  Type type = kernel_.expr(expr.operands[0]).type;
  Val operands[3];
  size_t count = expr.operands.size();
  for (size_t i = 0; i < count; ++i) operands[i] = eval(expr.operands[i]);
  Val result = join({&operands[0], &operands[1], &operands[2]});
  for (size_t i = 0; i < count; ++i) result.varying |= !operands[i].uniform();
  result.bounds = Bounds::of(expr.type);
  At at(*this, result.level);
  Value* v[3] = {};
  for (size_t i = 0; i < count; ++i) v[i] = operand(operands[i], type, result.varying);
  if (expr.op == Op::div && result.varying) v[1] = divisor(b_, v[1], mask_);
  if (expr.op == Op::fma) {
    result.v = emit_fma(math_, v[0], v[1], v[2]);
  } else if (is_math(expr.op)) {
    result.v = count == 1 ? emit_math(math_, expr.op, v[0]) : emit_math(math_, expr.op, v[0], v[1]);
  } else if (count == 1) {
    result.v = emit_unary(math_, expr.op, type, v[0]);
  } else {
    result.v = emit_binary(math_, expr.op, type, v[0], v[1]);
  }
  return result;
}

}  // namespace heddle::emit
