#include "kernel/simplify.h"

#include <algorithm>

#include "kernel/scalar.h"

namespace heddle::kernel {
namespace {

bool is_constant(const Kernel& kernel, ExprId id) { return kernel.expr(id).op == Op::constant; }

bool is_constant(const Kernel& kernel, ExprId id, int64_t value) {
  const Expr& expr = kernel.expr(id);
  return expr.op == Op::constant && !tensor::is_float(expr.type) && expr.imm == value;
}

ExprId make_constant(Kernel& kernel, Type type, uint64_t bits) {
  return kernel.add({Op::constant, type, {}, static_cast<int64_t>(bits)});
}

bool commutes(Op op) {
  return op == Op::add || op == Op::mul || op == Op::and_ || op == Op::or_ || op == Op::xor_ ||
         op == Op::min || op == Op::max;
}

bool integer_or_pred(Type type) { return type == Type::pred || tensor::is_integer(type); }

// All operands constant.
std::optional<ExprId> fold(Kernel& kernel, const Expr& expr) {
  uint64_t bits[3] = {};
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    if (!is_constant(kernel, expr.operands[i])) return std::nullopt;
    bits[i] = static_cast<uint64_t>(kernel.expr(expr.operands[i]).imm);
  }
  Type type = kernel.expr(expr.operands[0]).type;
  bool floors = expr.op == Op::floor_div || expr.op == Op::floor_mod;
  if (floors && static_cast<int64_t>(bits[1]) <= 0) return std::nullopt;
  if (expr.op == Op::lane || expr.op == Op::shuffle_xor) return std::nullopt;
  return make_constant(kernel, expr.type, evaluate(expr.op, type, bits[0], bits[1], bits[2]));
}

std::optional<ExprId> simplify_binary(Kernel& kernel, Expr& expr) {
  if (commutes(expr.op) && is_constant(kernel, expr.operands[0])) {
    std::swap(expr.operands[0], expr.operands[1]);
  }
  ExprId left = expr.operands[0], right = expr.operands[1];
  if (!is_constant(kernel, right)) return std::nullopt;
  const Expr constant = kernel.expr(right);
  const Expr inner = kernel.expr(left);
  switch (expr.op) {
    case Op::add:
      if (constant.imm == 0) return left;
      if (inner.op == Op::add && is_constant(kernel, inner.operands[1])) {
        ExprId sum = kernel.binary(Op::add, inner.operands[1], right);
        return kernel.binary(Op::add, inner.operands[0], sum);
      }
      return std::nullopt;
    case Op::sub:
      if (constant.imm == 0) return left;
      if (!tensor::is_signed_integer(expr.type)) return std::nullopt;
      return kernel.binary(Op::add, left, kernel.unary(Op::neg, right));
    case Op::mul:
      if (constant.imm == 1) return left;
      return constant.imm == 0 ? std::optional(right) : std::nullopt;
    case Op::div:
    case Op::floor_div:
      return constant.imm == 1 ? std::optional(left) : std::nullopt;
    case Op::rem:
    case Op::floor_mod:
      if (constant.imm != 1) return std::nullopt;
      return make_constant(kernel, expr.type, 0);
    case Op::and_:
    case Op::or_:
      if (expr.type != Type::pred) return std::nullopt;
      return (expr.op == Op::and_) == (constant.imm == 1) ? left : right;
    default:
      return std::nullopt;
  }
}

std::optional<ExprId> simplify_load(Kernel& kernel, Expr& expr) {
  if (!expr.guarded || expr.operands.size() < 2) return std::nullopt;
  ExprId mask = expr.operands[expr.operands.size() - 2];
  if (is_constant(kernel, mask, 0)) return expr.operands.back();
  if (!is_constant(kernel, mask, 1)) return std::nullopt;
  expr.operands.resize(expr.operands.size() - 2);
  expr.guarded = false;
  return std::nullopt;
}

std::optional<ExprId> simplify_convert(Kernel& kernel, const Expr& expr) {
  const Expr& operand = kernel.expr(expr.operands[0]);
  if (operand.type == expr.type) return expr.operands[0];
  if (expr.op != Op::convert || operand.op != Op::constant) return std::nullopt;
  if (!integer_or_pred(operand.type) || !integer_or_pred(expr.type)) return std::nullopt;
  if (!can_convert(operand.type, expr.type)) return std::nullopt;
  auto bits = static_cast<uint64_t>(operand.imm);
  return make_constant(kernel, expr.type, convert_bits(operand.type, expr.type, bits));
}

std::optional<ExprId> simplify_select(Kernel& kernel, const Expr& expr) {
  if (expr.operands[1] == expr.operands[2]) return expr.operands[1];
  if (is_constant(kernel, expr.operands[0], 1)) return expr.operands[1];
  if (is_constant(kernel, expr.operands[0], 0)) return expr.operands[2];
  return std::nullopt;
}

}  // namespace

// Ill-typed nodes are left as they are, for the verifier to report.
std::optional<ExprId> simplify(Kernel& kernel, Expr& expr) {
  if (expr.op == Op::constant) {
    expr.imm = static_cast<int64_t>(canonical_bits(expr.type, static_cast<uint64_t>(expr.imm)));
    return std::nullopt;
  }
  if (expr.op == Op::load) return simplify_load(kernel, expr);
  int operands = op_operands(expr.op);
  if (operands <= 0 || static_cast<int>(expr.operands.size()) != operands) return std::nullopt;
  if (expr.op == Op::convert || expr.op == Op::bitcast) return simplify_convert(kernel, expr);
  if (expr.op == Op::select) return simplify_select(kernel, expr);
  Type type = kernel.expr(expr.operands[0]).type;
  bool fits =
      integer_or_pred(type) && op_takes(expr.op, type) && expr.type == op_result(expr.op, type);
  for (ExprId id : expr.operands) fits = fits && kernel.expr(id).type == type;
  if (!fits) return std::nullopt;
  if (auto folded = fold(kernel, expr)) return folded;
  return operands == 2 ? simplify_binary(kernel, expr) : std::nullopt;
}

}  // namespace heddle::kernel
