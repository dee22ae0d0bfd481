#include "compiler/shifted_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "kernel/linear.h"
#include "kernel/rewriter.h"

namespace heddle::compiler {
namespace {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;

class Shifter {
 public:
  explicit Shifter(const Kernel& kernel) { result_.kernel = kernel; }

  ShiftedReads run() {
    Kernel& kernel = result_.kernel;
    least_.assign(kernel.buffers.size(), kNotRead);
    for (const kernel::Phase& phase : kernel.phases)
      for (const kernel::Group& group : phase.groups) find_least(group.body);
    dim_of_.assign(kernel.buffers.size(), -1);
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      if (least_[b] == kNotRead || least_[b] <= 0) continue;
      dim_of_[b] = static_cast<int64_t>(kernel.dims.size());
      kernel.dims.push_back(fmt::format("from{}", b));
      result_.dims.push_back(least_[b]);
    }
    if (result_.dims.empty()) return std::move(result_);
    rewrite();
    return std::move(result_);
  }

 private:
  static constexpr int64_t kNotRead = std::numeric_limits<int64_t>::max();

  // Flat inputs: what stitch makes.
  bool may_shift(kernel::BufferId id) const {
    const kernel::Buffer& buffer = result_.kernel.buffer(id);
    return buffer.space == kernel::Space::global && buffer.access == kernel::Access::in &&
           buffer.extents.size() == 1;
  }

  void note_read(kernel::BufferId buffer, ExprId index) {
    if (!may_shift(buffer)) return;
    int64_t& least = least_[buffer.index()];
    least = std::min(least, kernel::linear(result_.kernel, index).constant);
  }

  void find_least(const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      if (stmt.kind == StmtKind::prefetch) note_read(stmt.buffer, stmt.indices.at(0));
      if (stmt.kind == StmtKind::async_copy) note_read(stmt.source, stmt.source_indices.at(0));
      std::vector<ExprId> work = kernel::expressions(stmt);
      while (!work.empty()) {
        const ExprId id = work.back();
        work.pop_back();
        if (!seen_.insert(id.value).second) continue;
        const Expr& expr = result_.kernel.expr(id);
        if (expr.op == Op::load) note_read(expr.buffer, expr.operands.at(0));
        work.insert(work.end(), expr.operands.begin(), expr.operands.end());
      }
      find_least(stmt.body);
      find_least(stmt.otherwise);
    }
  }

  ExprId shifted(kernel::BufferId buffer, ExprId index) {
    const int64_t dim = dim_of_[buffer.index()];
    if (dim < 0) return index;
    Kernel& kernel = result_.kernel;
    const int64_t constant = kernel::linear(kernel, index).constant - least_[buffer.index()];
    ExprId sum = kernel::without_constant(&kernel, index);
    sum = sum.valid() ? kernel.binary(Op::add, sum, kernel.dim(dim)) : kernel.dim(dim);
    return constant == 0 ? sum : kernel.binary(Op::add, sum, kernel.constant(constant));
  }

  void rewrite() {
    kernel::Rewriter shifting(&result_.kernel);
    shifting.made = [&](const Expr& expr) -> std::optional<ExprId> {
      if (expr.op != Op::load) return std::nullopt;
      Expr moved = expr;
      moved.operands[0] = shifted(moved.buffer, moved.operands[0]);
      return result_.kernel.add(std::move(moved));
    };
    shifting.statement = [&](const Stmt&, Stmt made, std::vector<Stmt>* to) {
      if (made.kind == StmtKind::prefetch) made.indices[0] = shifted(made.buffer, made.indices[0]);
      if (made.kind == StmtKind::async_copy)
        made.source_indices[0] = shifted(made.source, made.source_indices[0]);
      to->push_back(std::move(made));
    };
    shifting.run();
  }

  ShiftedReads result_;
  std::vector<int64_t> least_, dim_of_;  // by buffer
  std::unordered_set<uint32_t> seen_;
};

}  // namespace

ShiftedReads shift_reads(const kernel::Kernel& kernel) {
  if (!kernel.dims.empty()) return {kernel, {}};
  return Shifter(kernel).run();
}

}  // namespace heddle::compiler
