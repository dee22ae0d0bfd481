#include "lower/trim_parts.h"

#include <algorithm>
#include <iterator>

#include "kernel/rewriter.h"

namespace heddle::lower::trimming {

using kernel::ExprId, kernel::Group, kernel::Kernel, kernel::LoopKind, kernel::Op, kernel::Phase;
using kernel::Stmt, kernel::StmtKind, kernel::VarId;

namespace {

int64_t widest(const std::vector<Stmt>& body) {
  int64_t most = 1;
  for (const Stmt& stmt : body) {
    if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::vector)
      most = std::max<int64_t>(most, stmt.lanes);
    most = std::max({most, widest(stmt.body), widest(stmt.otherwise)});
  }
  return most;
}

bool loads_register(const Kernel& kernel, ExprId id, VarId var) {
  const kernel::Expr& expr = kernel.expr(id);
  const bool in_register =
      expr.op == Op::load && kernel.buffer(expr.buffer).space == kernel::Space::reg;
  return std::any_of(expr.operands.begin(), expr.operands.end(), [&](ExprId operand) {
    return in_register ? mentions(kernel, operand, var) : loads_register(kernel, operand, var);
  });
}

}  // namespace

bool mentions(const Kernel& kernel, ExprId id, VarId var) {
  const kernel::Expr& expr = kernel.expr(id);
  return (expr.op == Op::var && expr.var == var) ||
         std::any_of(expr.operands.begin(), expr.operands.end(),
                     [&](ExprId operand) { return mentions(kernel, operand, var); });
}

bool numbers_registers(const Kernel& kernel, const std::vector<Stmt>& body, VarId var) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& stmt) {
    const bool into = stmt.kind == StmtKind::store &&
                      kernel.buffer(stmt.buffer).space == kernel::Space::reg &&
                      std::any_of(stmt.indices.begin(), stmt.indices.end(),
                                  [&](ExprId id) { return mentions(kernel, id, var); });
    const std::vector<ExprId> all = expressions(stmt);
    return into ||
           std::any_of(all.begin(), all.end(),
                       [&](ExprId id) { return loads_register(kernel, id, var); }) ||
           numbers_registers(kernel, stmt.body, var) ||
           numbers_registers(kernel, stmt.otherwise, var);
  });
}

std::vector<Stmt> in_parts(Kernel* kernel, Stmt loop, ExprId whole, ExprId rest, int64_t each) {
  kernel::Rewriter copy(kernel);  // the body for one value of the variable
  copy.fresh = true;
  copy.replace(loop.var, whole);
  std::vector<Stmt> last = copy.block(loop.body);
  Stmt& parts = last[0];
  if (each == 1) {
    parts.loop = LoopKind::serial;
    parts.extent = rest;
  } else {
    const ExprId before = kernel->binary(Op::mul, kernel->ref(parts.var), kernel->constant(each));
    parts.body = {make_if(kernel->compare(Op::gt, rest, before), std::move(parts.body))};
    last = {make_if(kernel->compare(Op::gt, rest, kernel->constant(0)), std::move(last))};
  }
  loop.extent = whole;
  std::vector<Stmt> result;
  result.push_back(std::move(loop));
  std::move(last.begin(), last.end(), std::back_inserter(result));
  return result;
}

int64_t most_lanes(const Kernel& kernel) {
  int64_t most = 1;
  for (const Phase& phase : kernel.phases)
    for (const Group& group : phase.groups) most = std::max(most, widest(group.body));
  return most;
}

}  // namespace heddle::lower::trimming
