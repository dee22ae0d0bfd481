// Kernels that differ only in where they begin to read, as the steps of an unrolled recurrence do,
// can be one kernel with run-time offsets: the constant part of the indices into each input (the
// least of all its reads, if that is not 0) becomes a run-time dimension.

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "kernel/linear.h"
#include "kernel/rewriter.h"
#include "lower/passes.h"

namespace heddle::lower {

namespace {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;

class Shifter {
 public:
  explicit Shifter(Kernel* kernel) : k_(*kernel) {}

  // Returns the values of the new dimensions.
  std::vector<int64_t> run() {
    least_.assign(k_.buffers.size(), kNotRead);
    for (const kernel::Phase& phase : k_.phases)
      for (const kernel::Group& group : phase.groups) find_least(group.body);
    std::vector<int64_t> dims;
    dim_of_.assign(k_.buffers.size(), -1);
    for (size_t b = 0; b < k_.buffers.size(); ++b) {
      if (least_[b] == kNotRead || least_[b] <= 0) continue;
      dim_of_[b] = static_cast<int64_t>(dims.size());
      k_.dims.push_back(fmt::format("from{}", b));
      dims.push_back(least_[b]);
    }
    if (!dims.empty()) rewrite();
    return dims;
  }

 private:
  static constexpr int64_t kNotRead = std::numeric_limits<int64_t>::max();

  static bool reads_at_place(const Stmt& stmt) {
    return stmt.kind == StmtKind::prefetch || stmt.kind == StmtKind::fragment_load;
  }

  // Flat inputs, as stitch makes them.
  bool may_shift(kernel::BufferId id) const {
    const kernel::Buffer& buffer = k_.buffer(id);
    return buffer.space == kernel::Space::global && buffer.access == kernel::Access::in &&
           buffer.extents.size() == 1;
  }

  void note_read(kernel::BufferId buffer, ExprId index) {
    if (!may_shift(buffer)) return;
    int64_t& least = least_[buffer.index()];
    least = std::min(least, kernel::linear(k_, index).constant);
  }

  void find_least(const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      if (reads_at_place(stmt)) note_read(stmt.buffer, stmt.indices.at(0));
      if (stmt.kind == StmtKind::async_copy) note_read(stmt.source, stmt.source_indices.at(0));
      std::vector<ExprId> work = kernel::expressions(stmt);
      while (!work.empty()) {
        const ExprId id = work.back();
        work.pop_back();
        if (!seen_.insert(id.value).second) continue;
        const Expr& expr = k_.expr(id);
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
    const int64_t constant = kernel::linear(k_, index).constant - least_[buffer.index()];
    ExprId sum = kernel::without_constant(&k_, index);
    sum = sum.valid() ? k_.binary(Op::add, sum, k_.dim(dim)) : k_.dim(dim);
    return constant == 0 ? sum : k_.binary(Op::add, sum, k_.constant(constant));
  }

  void rewrite() {
    kernel::Rewriter shifting(&k_);
    shifting.made = [&](const Expr& expr) -> std::optional<ExprId> {
      if (expr.op != Op::load) return std::nullopt;
      Expr moved = expr;
      moved.operands[0] = shifted(moved.buffer, moved.operands[0]);
      return k_.add(std::move(moved));
    };
    shifting.statement = [&](const Stmt&, Stmt made, std::vector<Stmt>* to) {
      if (reads_at_place(made)) made.indices[0] = shifted(made.buffer, made.indices[0]);
      if (made.kind == StmtKind::async_copy)
        made.source_indices[0] = shifted(made.source, made.source_indices[0]);
      to->push_back(std::move(made));
    };
    shifting.run();
  }

  Kernel& k_;
  std::vector<int64_t> least_, dim_of_;  // by buffer
  std::unordered_set<uint32_t> seen_;
};

}  // namespace

Result<bool> shift_reads(Kernel& kernel, const Context& context) {
  if (!kernel.dims.empty()) return false;
  std::vector<int64_t> dims = Shifter(&kernel).run();
  if (dims.empty()) return false;
  if (context.dims) *context.dims = std::move(dims);
  return true;
}

}  // namespace heddle::lower
