// Rows that begin in the middle of a cache line and are stored past the caches: only whole aligned
// vectors can be streamed, so the vector loops that stream them first store the elements before the
// first line boundary, as a partial vector.

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "kernel/lanes.h"
#include "kernel/linear.h"
#include "kernel/rewriter.h"
#include "lower/passes.h"

namespace heddle::lower {

namespace {

using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Rewriter;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;

constexpr int64_t kLineBytes = 64;
constexpr int64_t kLeastLines =
    6;  // of a row: the lines at its ends are read before they are written

class LineStarts {
 public:
  explicit LineStarts(Kernel* kernel) : k_(*kernel) {}

  bool run(std::vector<Stmt>* block) {
    bool changed = false;
    std::vector<Stmt> result;
    for (Stmt& stmt : *block) {
      std::optional<Start> start;
      if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::vector) start = start_of(stmt);
      if (start) {
        cut(stmt, *start, &result);
        changed = true;
        continue;
      }
      changed |= run(&stmt.body);
      changed |= run(&stmt.otherwise);
      result.push_back(std::move(stmt));
    }
    *block = std::move(result);
    return changed;
  }

 private:
  // Scratch that a sweep has just written is still in the store buffer, after the streamed lines:
  // vectors that straddle two of its stores would have to wait for it.
  bool reads_scratch(const Stmt& loop) const {
    for (const Stmt& stmt : loop.body)
      for (ExprId id : kernel::reachable(k_, expressions(stmt))) {
        const kernel::Expr& expr = k_.expr(id);
        if (expr.op == Op::load && k_.buffer(expr.buffer).space == kernel::Space::scratch)
          return true;
      }
    return false;
  }

  struct Start {
    ExprId base;   // of the row, in elements
    int64_t unit;  // elements of a line, or of a vector that is longer
  };

  // The start of the row; nullopt if it is at a line boundary anyway, or nothing is streamed.
  std::optional<Start> start_of(const Stmt& loop) {
    const kernel::Expr& extent = k_.expr(loop.extent);
    if (extent.op != Op::constant || reads_scratch(loop)) return std::nullopt;
    std::unordered_set<uint32_t> inside;
    for (const Stmt& stmt : loop.body)
      if (stmt.var.valid()) inside.insert(stmt.var.value);
    std::optional<Start> start;
    for (const Stmt& stmt : loop.body) {
      if (stmt.kind != StmtKind::store || !stmt.streaming || stmt.mask.valid()) continue;
      const int64_t bytes = tensor::type_bytes(k_.buffer(stmt.buffer).type);
      const int64_t unit = std::max<int64_t>(loop.lanes, kLineBytes / bytes);
      const kernel::Linear at = kernel::linear(k_, stmt.indices[0]);
      if (!at.is_of_variables() || at.factor(loop.var) != 1 || extent.imm < kLeastLines * unit)
        return std::nullopt;
      bool whole = at.constant % unit == 0;
      for (const kernel::Linear::Term& term : at.terms) {
        if (inside.contains(term.var.value)) return std::nullopt;
        whole &= term.var == loop.var || term.factor % unit == 0;
      }
      if (whole || start) continue;
      Rewriter first(&k_);
      first.replace(loop.var, k_.constant(0));
      start = Start{first.expr(stmt.indices[0]), unit};
    }
    return start;
  }

  // Splits the loop into the iterations before the first line boundary and the rest.
  void cut(const Stmt& loop, const Start& start, std::vector<Stmt>* result) {
    const ExprId unit = k_.constant(start.unit);
    const ExprId line = k_.binary(
        Op::mul,
        k_.binary(Op::floor_div, k_.binary(Op::add, start.base, k_.constant(start.unit - 1)), unit),
        unit);
    const ExprId skipped = k_.binary(Op::sub, line, start.base);
    Stmt head = loop;
    head.extent = skipped;
    for (Stmt& stmt : head.body) stmt.streaming = false;
    Stmt rest = loop;
    rest.extent = k_.binary(Op::sub, loop.extent, skipped);
    rest.var = k_.add_var(k_.var(loop.var).name);
    Rewriter moved(&k_);
    moved.fresh = true;
    moved.replace(loop.var, k_.binary(Op::add, k_.ref(rest.var), skipped));
    rest.body = moved.block(loop.body);
    result->push_back(std::move(head));
    result->push_back(std::move(rest));
  }

  Kernel& k_;
};

}  // namespace

Result<bool> line_starts(Kernel& kernel, const Context& context) {
  return for_each_nest(kernel, context,
                       [&](kernel::Group* group) { return LineStarts(&kernel).run(&group->body); });
}

}  // namespace heddle::lower
