#include "kernel/graft.h"

namespace heddle::kernel {

Graft::Graft(const Kernel& from, const std::vector<BufferId>& buffers, Kernel* to)
    : from_(from), to_(*to), exprs_(from.exprs().size()), vars_(from.vars.size()) {
  for (size_t b = 0; b < from.buffers.size(); ++b)
    buffers_.push_back(b < buffers.size() ? buffers[b] : to_.add_buffer(from.buffers[b]));
}

Group Graft::group(const Group& group) {
  Group made;
  made.block_threads = group.block_threads;
  for (const GridDim& dim : group.grid) made.grid.push_back({var(dim.var), expr(dim.extent)});
  made.body = block(group.body);
  return made;
}

std::vector<Stmt> Graft::block(const std::vector<Stmt>& body) {
  std::vector<Stmt> result;
  for (const Stmt& stmt : body) {
    Stmt made = stmt;
    if (made.var.valid()) made.var = var(made.var);
    for (ExprId* id : {&made.extent, &made.value, &made.mask}) *id = expr(*id);
    for (ExprId& id : made.indices) id = expr(id);
    for (ExprId& id : made.source_indices) id = expr(id);
    for (BufferId* id : {&made.buffer, &made.source})
      if (id->valid()) *id = buffers_[id->index()];
    for (BufferId& id : made.fragments) id = buffers_[id.index()];
    made.body = block(stmt.body);
    made.otherwise = block(stmt.otherwise);
    result.push_back(std::move(made));
  }
  return result;
}

VarId Graft::var(VarId id) {
  VarId& made = vars_[id.index()];
  if (!made.valid()) made = to_.add_var(from_.var(id).name, from_.var(id).type);
  return made;
}

// Operands first, from a list: expressions may be deeper than the stack.
ExprId Graft::expr(ExprId id) {
  if (!id.valid()) return id;
  std::vector<ExprId> work{id};
  while (!work.empty()) {
    const ExprId at = work.back();
    if (exprs_[at.index()].valid()) {
      work.pop_back();
      continue;
    }
    Expr copy = from_.expr(at);
    if (exchange) {
      if (const std::optional<ExprId> other = exchange(copy)) {
        exprs_[at.index()] = *other;
        continue;
      }
    }
    bool ready = true;
    for (ExprId operand : copy.operands) {
      if (exprs_[operand.index()].valid()) continue;
      work.push_back(operand);
      ready = false;
    }
    if (!ready) continue;
    for (ExprId& operand : copy.operands) operand = exprs_[operand.index()];
    if (copy.var.valid()) copy.var = var(copy.var);
    if (copy.buffer.valid()) copy.buffer = buffers_[copy.buffer.index()];
    exprs_[at.index()] = to_.add(std::move(copy));
    work.pop_back();
  }
  return exprs_[id.index()];
}

}  // namespace heddle::kernel
