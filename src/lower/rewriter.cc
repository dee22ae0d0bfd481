#include "lower/rewriter.h"

#include <algorithm>

#include "kernel/lanes.h"

namespace heddle::lower {

using kernel::Expr;
using kernel::ExprId;
using kernel::Op;
using kernel::Stmt;
using kernel::VarId;

ExprId Rewriter::expr(ExprId root) {
  if (!root.valid()) return root;
  for (ExprId id : kernel::reachable(kernel_, {root})) {
    if (exprs_.contains(id.value)) continue;
    Expr made = kernel_.expr(id);
    for (ExprId& operand : made.operands) operand = exprs_.at(operand.value);
    ExprId result;
    if (made.op == Op::var && vars_.contains(made.var.value)) {
      result = vars_.at(made.var.value);
    } else if (made.op == Op::load && load) {
      const std::optional<ExprId> other = load(made);
      result = other ? *other : kernel_.add(made);
    } else {
      result = kernel_.add(made);
    }
    exprs_.emplace(id.value, result);
  }
  return exprs_.at(root.value);
}

std::vector<Stmt> Rewriter::block(const std::vector<Stmt>& body) {
  std::vector<Stmt> result;
  for (const Stmt& stmt : body) {
    Stmt made = stmt;
    for (ExprId* id : {&made.extent, &made.value, &made.mask}) *id = expr(*id);
    for (ExprId& id : made.indices) id = expr(id);
    for (ExprId& id : made.source_indices) id = expr(id);
    if (fresh && stmt.var.valid()) {
      made.var = kernel_.add_var(kernel_.var(stmt.var).name, kernel_.var(stmt.var).type);
      replace(stmt.var, kernel_.ref(made.var));
    }
    made.body = block(stmt.body);
    made.otherwise = block(stmt.otherwise);
    result.push_back(std::move(made));
  }
  return result;
}

std::optional<Linear> linear(const kernel::Kernel& kernel, ExprId id, const Lets& lets) {
  const Expr& expr = kernel.expr(id);
  Linear result;
  switch (expr.op) {
    case Op::constant:
      result.constant = expr.imm;
      return result;
    case Op::var:
      if (auto named = lets.find(expr.var.value); named != lets.end())
        return linear(kernel, named->second, lets);
      result.factors[expr.var.value] = 1;
      return result;
    case Op::add:
    case Op::sub: {
      const std::optional<Linear> a = linear(kernel, expr.operands[0], lets);
      const std::optional<Linear> b = linear(kernel, expr.operands[1], lets);
      if (!a || !b) return std::nullopt;
      const int64_t sign = expr.op == Op::add ? 1 : -1;
      result = *a;
      result.constant += sign * b->constant;
      for (const auto& [var, factor] : b->factors) result.factors[var] += sign * factor;
      return result;
    }
    case Op::mul: {
      std::optional<Linear> a = linear(kernel, expr.operands[0], lets);
      const std::optional<Linear> b = linear(kernel, expr.operands[1], lets);
      if (!a || !b || !b->factors.empty()) return std::nullopt;
      a->constant *= b->constant;
      for (auto& [var, factor] : a->factors) factor *= b->constant;
      return a;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace heddle::lower
