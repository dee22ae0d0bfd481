#include "kernel/rewriter.h"

#include "kernel/lanes.h"

namespace heddle::kernel {

Rewriter::Rewriter(Kernel* kernel) : from_(*kernel), to_(*kernel), in_place_(true) {}

Rewriter::Rewriter(const Kernel& from, const std::vector<BufferId>& buffers, Kernel* to)
    : from_(from), to_(*to), in_place_(false) {
  HEDDLE_CHECK(&from != to, "{} is written into itself", from.name);
  for (size_t b = 0; b < from.buffers.size(); ++b)
    buffers_.push_back(b < buffers.size() ? buffers[b] : to_.add_buffer(from.buffers[b]));
}

void Rewriter::run() {
  for (Phase& phase : to_.phases)
    for (Group& group : phase.groups) group = this->group(group);
}

Group Rewriter::group(const Group& group) {
  Group made = group;
  for (GridDim& dim : made.grid) dim = {var(dim.var), expr(dim.extent)};
  made.body = block(group.body);
  return made;
}

std::vector<Stmt> Rewriter::block(const std::vector<Stmt>& body) {
  std::vector<Stmt> result;
  for (const Stmt& stmt : body) {
    Stmt made = stmt;
    auto write = [&](ExprId* id, Part part) {
      if (!keeps_part || !keeps_part(stmt, part)) *id = expr(*id);
    };
    bind(&made);
    write(&made.extent, Part::extent);
    write(&made.value, Part::value);
    write(&made.mask, Part::mask);
    for (ExprId& id : made.indices) write(&id, Part::indices);
    for (ExprId& id : made.source_indices) write(&id, Part::source_indices);
    for (BufferId* id : {&made.buffer, &made.source})
      if (id->valid()) *id = buffer(*id);
    for (BufferId& id : made.fragments) id = buffer(id);
    made.body = block(stmt.body);
    made.otherwise = block(stmt.otherwise);
    if (statement)
      statement(stmt, std::move(made), &result);
    else
      result.push_back(std::move(made));
  }
  return result;
}

void Rewriter::bind(Stmt* stmt) {
  if (!stmt->var.valid()) return;
  const VarId old = stmt->var;
  if (fresh) vars_[old.value] = to_.add_var(from_.var(old).name, from_.var(old).type);
  stmt->var = var(old);
  if (fresh) replaced_[old.value] = to_.ref(stmt->var);
}

VarId Rewriter::var(VarId id) {
  const auto known = vars_.find(id.value);
  if (known != vars_.end()) return known->second;
  if (in_place_) return id;
  return vars_[id.value] = to_.add_var(from_.var(id).name, from_.var(id).type);
}

ExprId Rewriter::expr(ExprId root) {
  if (!root.valid()) return root;
  // Operands have smaller ids. In place, new nodes are added in the order of the old ones, so that
  // texts, which number shared nodes in order, stay equal.
  if (in_place_ && shares && !exprs_.contains(root.value))
    for (ExprId id : reachable(from_, {root})) written(id);
  return written(root);
}

// Invalid: the expression has to be rewritten.
ExprId Rewriter::known(ExprId id) {
  if (const auto found = exprs_.find(id.value); found != exprs_.end()) return found->second;
  ExprId result;
  if (instead) result = instead(id, Expr(from_.expr(id))).value_or(ExprId());
  if (const VarId var = from_.expr(id).var; !result.valid() && var.valid())
    if (const auto by = replaced_.find(var.value); by != replaced_.end()) result = by->second;
  if (result.valid() && shares) exprs_.emplace(id.value, result);
  return result;
}

// Operands first, with an explicit stack: expressions may be deeper than the call stack.
ExprId Rewriter::written(ExprId root) {
  struct Open {
    ExprId id;
    Expr expr;
    size_t left;  // operands that are not written yet
  };
  ExprId result = known(root);
  std::vector<Open> open;
  auto begin = [&](ExprId id) {
    const Expr& expr = from_.expr(id);
    open.push_back({id, expr, expr.operands.size()});
  };
  if (!result.valid()) begin(root);
  while (!open.empty()) {
    Open& at = open.back();
    if (at.left > 0) {
      ExprId& operand = at.expr.operands[at.left - 1];
      if (!keeps_operand || !keeps_operand(at.expr, at.left - 1)) {
        const ExprId other = known(operand);
        if (!other.valid()) {
          begin(operand);
          continue;
        }
        operand = other;
      }
      --at.left;
      continue;
    }
    if (at.expr.var.valid()) at.expr.var = var(at.expr.var);
    if (at.expr.buffer.valid()) at.expr.buffer = buffer(at.expr.buffer);
    result = made ? made(at.expr).value_or(ExprId()) : ExprId();
    if (!result.valid()) result = to_.add(at.expr);
    if (shares) exprs_[at.id.value] = result;
    open.pop_back();
    if (!open.empty()) open.back().expr.operands[--open.back().left] = result;
  }
  return result;
}

}  // namespace heddle::kernel
