#include "compiler/shifted_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace heddle::compiler {
namespace {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::Op;
using kernel::Stmt;

class Shifter {
 public:
  explicit Shifter(const Kernel& kernel) { result_.kernel = kernel; }

  ShiftedReads run() {
    Kernel& kernel = result_.kernel;
    least_.assign(kernel.buffers.size(), kNotRead);
    for_each_statement([&](Stmt& stmt) { find_least(stmt); });
    dim_of_.assign(kernel.buffers.size(), -1);
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      if (least_[b] == kNotRead || least_[b] <= 0) continue;
      dim_of_[b] = static_cast<int64_t>(kernel.dims.size());
      kernel.dims.push_back(fmt::format("from{}", b));
      result_.dims.push_back(least_[b]);
    }
    if (result_.dims.empty()) return std::move(result_);
    for_each_statement([&](Stmt& stmt) { rewrite(stmt); });
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

  template <typename Function>
  void for_each_statement(Function&& function) {
    for (kernel::Phase& phase : result_.kernel.phases)
      for (kernel::Group& group : phase.groups) for_each_statement(group.body, function);
  }
  template <typename Function>
  static void for_each_statement(std::vector<Stmt>& body, Function& function) {
    for (Stmt& stmt : body) {
      function(stmt);
      for_each_statement(stmt.body, function);
      for_each_statement(stmt.otherwise, function);
    }
  }

  // The constant part of a sum.
  int64_t constant_part(ExprId id) const {
    const Expr& expr = result_.kernel.expr(id);
    if (expr.op == Op::constant) return expr.imm;
    if (expr.op != Op::add) return 0;
    return constant_part(expr.operands[0]) + constant_part(expr.operands[1]);
  }

  // The others, in their order; invalid where there is none.
  ExprId without_constant(ExprId id) {
    const Expr expr = result_.kernel.expr(id);
    if (expr.op == Op::constant) return {};
    if (expr.op != Op::add) return id;
    const ExprId a = without_constant(expr.operands[0]), b = without_constant(expr.operands[1]);
    if (!a.valid() || !b.valid()) return a.valid() ? a : b;
    return result_.kernel.binary(Op::add, a, b);
  }

  void note_read(kernel::BufferId buffer, ExprId index) {
    if (!may_shift(buffer)) return;
    int64_t& least = least_[buffer.index()];
    least = std::min(least, constant_part(index));
  }

  void find_least(const Stmt& stmt) {
    if (stmt.kind == kernel::StmtKind::prefetch) note_read(stmt.buffer, stmt.indices.at(0));
    if (stmt.kind == kernel::StmtKind::async_copy)
      note_read(stmt.source, stmt.source_indices.at(0));
    std::vector<ExprId> work = kernel::expressions(stmt);
    while (!work.empty()) {
      const ExprId id = work.back();
      work.pop_back();
      if (!seen_.emplace(id.value, id).second) continue;
      const Expr& expr = result_.kernel.expr(id);
      if (expr.op == Op::load) note_read(expr.buffer, expr.operands.at(0));
      work.insert(work.end(), expr.operands.begin(), expr.operands.end());
    }
  }

  ExprId shifted(kernel::BufferId buffer, ExprId index) {
    const int64_t dim = dim_of_[buffer.index()];
    if (dim < 0) return index;
    Kernel& kernel = result_.kernel;
    const int64_t constant = constant_part(index) - least_[buffer.index()];
    ExprId sum = without_constant(index);
    sum = sum.valid() ? kernel.binary(Op::add, sum, kernel.dim(dim)) : kernel.dim(dim);
    return constant == 0 ? sum : kernel.binary(Op::add, sum, kernel.constant(constant));
  }

  ExprId rewritten(ExprId id) {
    if (!id.valid()) return id;
    if (auto known = done_.find(id.value); known != done_.end()) return known->second;
    Expr expr = result_.kernel.expr(id);
    for (ExprId& operand : expr.operands) operand = rewritten(operand);
    if (expr.op == Op::load) expr.operands[0] = shifted(expr.buffer, expr.operands[0]);
    const ExprId result = result_.kernel.add(std::move(expr));
    done_.emplace(id.value, result);
    return result;
  }

  void rewrite(Stmt& stmt) {
    for (ExprId* id : {&stmt.extent, &stmt.value, &stmt.mask}) *id = rewritten(*id);
    for (ExprId& id : stmt.indices) id = rewritten(id);
    for (ExprId& id : stmt.source_indices) id = rewritten(id);
    if (stmt.kind == kernel::StmtKind::prefetch)
      stmt.indices[0] = shifted(stmt.buffer, stmt.indices[0]);
    if (stmt.kind == kernel::StmtKind::async_copy)
      stmt.source_indices[0] = shifted(stmt.source, stmt.source_indices[0]);
  }

  ShiftedReads result_;
  std::vector<int64_t> least_, dim_of_;  // by buffer
  std::unordered_map<uint32_t, ExprId> seen_, done_;
};

}  // namespace

ShiftedReads shift_reads(const kernel::Kernel& kernel) {
  if (!kernel.dims.empty()) return {kernel, {}};
  return Shifter(kernel).run();
}

}  // namespace heddle::compiler
