#include "kernel/expand.h"

#include "base/check.h"

namespace heddle::kernel {
namespace {

// One row: statements of the inner kernel over buffers, variables and numbers of the outer one.
class RowExpander {
 public:
  RowExpander(const Kernel& inner, const Instance& row, Kernel* to)
      : inner_(inner), row_(row), to_(*to), exprs_(inner.exprs().size()), vars_(inner.vars.size()) {
    for (size_t b = 0; b < inner.buffers.size(); ++b)
      buffers_.push_back(b < row.buffers.size() ? row.buffers[b]
                                                : to_.add_buffer(inner.buffers[b]));
  }

  Group group(const Group& from) {
    Group made;
    made.block_threads = from.block_threads;
    for (const GridDim& dim : from.grid) made.grid.push_back({var(dim.var), expr(dim.extent)});
    made.body = copy(from.body);
    return made;
  }

 private:
  std::vector<Stmt> copy(const std::vector<Stmt>& body) {
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
      made.body = copy(stmt.body);
      made.otherwise = copy(stmt.otherwise);
      result.push_back(std::move(made));
    }
    return result;
  }

  VarId var(VarId id) {
    VarId& made = vars_[id.index()];
    if (!made.valid()) made = to_.add_var(inner_.var(id).name, inner_.var(id).type);
    return made;
  }

  ExprId expr(ExprId id) {
    if (!id.valid()) return id;
    // Operands have smaller ids: all up to it, in order, where one is missing.
    if (!exprs_[id.index()].valid())
      for (size_t i = 0; i <= id.index(); ++i)
        if (!exprs_[i].valid()) exprs_[i] = copy(inner_.exprs()[i]);
    return exprs_[id.index()];
  }

  ExprId copy(Expr expr) {
    if (expr.op == Op::dim) return to_.constant(row_.dims[static_cast<size_t>(expr.imm)]);
    for (ExprId& operand : expr.operands) operand = exprs_[operand.index()];
    if (expr.var.valid()) expr.var = var(expr.var);
    if (expr.buffer.valid()) expr.buffer = buffers_[expr.buffer.index()];
    return to_.add(std::move(expr));
  }

  const Kernel& inner_;
  const Instance& row_;
  Kernel& to_;
  std::vector<ExprId> exprs_;
  std::vector<VarId> vars_;
  std::vector<BufferId> buffers_;
};

}  // namespace

Kernel expand_tables(const Kernel& kernel) {
  Kernel result = kernel;
  result.inner.clear();
  result.phases.clear();
  for (const Phase& phase : kernel.phases) {
    result.phases.emplace_back();
    for (const Group& table : phase.groups) {
      HEDDLE_CHECK(table.is_table(), "{} has groups beside its tables", kernel.name);
      const Kernel& inner = kernel.inner[static_cast<size_t>(table.inner)];
      for (const Instance& row : table.table) {
        if (phase.in_order && !result.phases.back().groups.empty()) result.phases.emplace_back();
        RowExpander expander(inner, row, &result);
        for (const Group& group : inner.phases[static_cast<size_t>(table.inner_phase)].groups)
          result.phases.back().groups.push_back(expander.group(group));
      }
    }
  }
  return result;
}

}  // namespace heddle::kernel
