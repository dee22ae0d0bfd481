#include <unordered_map>

#include "base/check.h"
#include "stitch/inline_phases.h"
#include "stitch/loop.h"

namespace heddle::stitch {

using kernel::BufferId;
using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::Op;
using kernel::Stmt;
using kernel::VarId;

namespace {

class Inliner {
 public:
  Inliner(const Kernel& from, const Buffers& globals, Kernel* to)
      : from_(from), to_(*to), exprs_(from.exprs().size()), vars_(from.vars.size()) {
    HEDDLE_CHECK(from.dims.empty() && from.global_count() == std::ssize(globals),
                 "{} does not fit the loop around it", from.name);
    for (size_t b = 0; b < from.buffers.size(); ++b)
      buffers_.push_back(b < globals.size() ? globals[b] : to_.add_buffer(from.buffers[b]));
  }

  std::vector<Stmt> run() {
    std::vector<Stmt> result = read_numbers();
    for (const kernel::Phase& phase : from_.phases)
      for (const kernel::Group& group : phase.groups) {
        std::vector<Stmt> body = copy(group.body);
        for (size_t d = group.grid.size(); d-- > 0;) {
          std::vector<Stmt> around;
          around.push_back(make_loop(kernel::LoopKind::serial, var(group.grid[d].var),
                                     expr(group.grid[d].extent), std::move(body)));
          body = std::move(around);
        }
        for (Stmt& stmt : body) result.push_back(std::move(stmt));
      }
    return result;
  }

  std::vector<kernel::Phase> phases() {
    std::vector<kernel::Phase> result;
    for (const kernel::Phase& phase : from_.phases) {
      result.emplace_back();
      for (const kernel::Group& group : phase.groups) {
        kernel::Group made;
        made.block_threads = group.block_threads;
        for (const kernel::GridDim& dim : group.grid)
          made.grid.push_back({var(dim.var), expr(dim.extent)});
        made.body = copy(group.body);
        result.back().groups.push_back(std::move(made));
      }
    }
    return result;
  }

 private:
  // Single elements that it reads (counters, where a box begins) are read once, in front of it.
  std::vector<Stmt> read_numbers() {
    std::vector<Stmt> result;
    numbers_.resize(static_cast<size_t>(from_.global_count()));
    for (size_t b = 0; b < numbers_.size(); ++b) {
      const kernel::Buffer& buffer = from_.buffers[b];
      if (buffer.access != kernel::Access::in ||
          to_.buffer(buffers_[b]).extents != std::vector<int64_t>{1})
        continue;
      numbers_[b] = to_.add_var("number", buffer.type);
      result.push_back(make_let(numbers_[b], to_.load(buffers_[b], {to_.constant(0)})));
    }
    return result;
  }

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

  bool is_number(const Expr& expr) const {
    return expr.op == Op::load && !expr.guarded && expr.buffer.index() < numbers_.size() &&
           numbers_[expr.buffer.index()].valid();
  }

  VarId var(VarId id) {
    VarId& made = vars_[id.index()];
    if (!made.valid()) made = to_.add_var(from_.var(id).name, from_.var(id).type);
    return made;
  }

  // Operands have smaller ids: no recursion deeper than the expression.
  ExprId expr(ExprId id) {
    if (!id.valid()) return id;
    std::vector<ExprId> work{id};
    while (!work.empty()) {
      const ExprId at = work.back();
      ExprId& made = exprs_[at.index()];
      if (made.valid()) {
        work.pop_back();
        continue;
      }
      Expr copy = from_.expr(at);
      if (is_number(copy)) {
        made = to_.ref(numbers_[copy.buffer.index()]);
        continue;
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
      made = to_.add(std::move(copy));
      work.pop_back();
    }
    return exprs_[id.index()];
  }

  const Kernel& from_;
  Kernel& to_;
  std::vector<ExprId> exprs_;
  std::vector<VarId> vars_;
  std::vector<BufferId> buffers_;
  std::vector<VarId> numbers_;  // by buffer of `from`; none: not a number
};

}  // namespace

std::vector<Stmt> inline_kernel(const Kernel& from, const Buffers& globals, Kernel* to) {
  return Inliner(from, globals, to).run();
}

std::vector<kernel::Phase> inline_phases(const Kernel& from, const Buffers& globals, Kernel* to) {
  return Inliner(from, globals, to).phases();
}

}  // namespace heddle::stitch
