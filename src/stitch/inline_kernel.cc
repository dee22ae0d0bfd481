#include "base/check.h"
#include "kernel/rewriter.h"
#include "stitch/inline_phases.h"
#include "stitch/loop.h"

namespace heddle::stitch {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::Op;
using kernel::Rewriter;
using kernel::Stmt;
using kernel::VarId;

namespace {

Rewriter copy_of(const Kernel& from, const Buffers& globals, Kernel* to) {
  HEDDLE_CHECK(from.dims.empty() && from.global_count() == std::ssize(globals),
               "{} does not fit the loop around it", from.name);
  return {from, globals, to};
}

// Reads the one-element inputs of `from` (counters, start indices) once, before its statements. By
// buffer: the variable.
std::vector<VarId> read_numbers(const Kernel& from, const Rewriter& copy, Kernel* to,
                                std::vector<Stmt>* block) {
  std::vector<VarId> numbers(static_cast<size_t>(from.global_count()));
  for (size_t b = 0; b < numbers.size(); ++b) {
    const kernel::Buffer& buffer = from.buffers[b];
    const kernel::BufferId there = copy.buffer(kernel::BufferId(b));
    if (buffer.access != kernel::Access::in || to->buffer(there).extents != std::vector<int64_t>{1})
      continue;
    numbers[b] = to->add_var("number", buffer.type);
    block->push_back(make_let(numbers[b], to->load(there, {to->constant(0)})));
  }
  return numbers;
}

}  // namespace

std::vector<Stmt> inline_kernel(const Kernel& from, const Buffers& globals, Kernel* to) {
  Rewriter copy = copy_of(from, globals, to);
  std::vector<Stmt> result;
  const std::vector<VarId> numbers = read_numbers(from, copy, to, &result);
  copy.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
    if (expr.op != Op::load || expr.guarded || expr.buffer.index() >= numbers.size() ||
        !numbers[expr.buffer.index()].valid())
      return std::nullopt;
    return to->ref(numbers[expr.buffer.index()]);
  };
  for (const kernel::Phase& phase : from.phases)
    for (const kernel::Group& group : phase.groups) {
      std::vector<Stmt> body = copy.block(group.body);
      for (size_t d = group.grid.size(); d-- > 0;) {
        std::vector<Stmt> around;
        around.push_back(make_loop(kernel::LoopKind::serial, copy.var(group.grid[d].var),
                                   copy.expr(group.grid[d].extent), std::move(body)));
        body = std::move(around);
      }
      for (Stmt& stmt : body) result.push_back(std::move(stmt));
    }
  return result;
}

std::vector<kernel::Phase> inline_phases(const Kernel& from, const Buffers& globals, Kernel* to) {
  Rewriter copy = copy_of(from, globals, to);
  std::vector<kernel::Phase> result;
  for (const kernel::Phase& phase : from.phases) {
    result.emplace_back();
    for (const kernel::Group& group : phase.groups)
      result.back().groups.push_back(copy.group(group));
  }
  return result;
}

}  // namespace heddle::stitch
