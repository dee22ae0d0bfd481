// Rewrites kernels: the common walk over expressions and statements for passes over kernels and for
// copies of one kernel in another. Hooks define the changes; without any, the result is equal to
// the original.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

class Rewriter {
 public:
  // In place: the result goes into the same kernel; buffers and variables stay.
  explicit Rewriter(Kernel* kernel);
  // From `from` into another kernel `to`; both must outlive this. The first buffers of `from`
  // become `buffers`; the others are added. A variable is copied once, for all calls.
  Rewriter(const Kernel& from, const std::vector<BufferId>& buffers, Kernel* to);

  // Reads of the variable become `by` from now on.
  void replace(VarId var, ExprId by) { replaced_[var.value] = by; }

  // The replacement of an original expression; its operands are not needed then. Nullopt: it is
  // rewritten.
  std::function<std::optional<ExprId>(ExprId, const Expr&)> instead;
  // The replacement of an expression, given with rewritten operands, variable and buffer.
  std::function<std::optional<ExprId>(const Expr&)> made;
  // Appends a statement to `to`, given the original and the rewritten one, or a replacement.
  std::function<void(const Stmt& from, Stmt made, std::vector<Stmt>* to)> statement;
  // In place: operands, and parts of statements, that are not rewritten.
  enum class Part : uint8_t { extent, value, mask, indices, source_indices };
  std::function<bool(const Expr&, size_t operand)> keeps_operand;
  std::function<bool(const Stmt&, Part)> keeps_part;
  // In place: copied statements bind (loops, lets) new variables.
  bool fresh = false;
  // An expression is rewritten once, for all its uses; else once per use.
  bool shares = true;

  ExprId expr(ExprId id);  // an invalid one stays so
  std::vector<Stmt> block(const std::vector<Stmt>& body);
  Group group(const Group& group);
  void run();  // in place: all groups

  BufferId buffer(BufferId id) const { return buffers_.empty() ? id : buffers_[id.index()]; }
  VarId var(VarId id);  // of the copy

 private:
  ExprId known(ExprId id);
  ExprId written(ExprId root);
  void bind(Stmt* stmt);

  const Kernel& from_;
  Kernel& to_;
  const bool in_place_;
  std::vector<BufferId> buffers_;
  std::unordered_map<uint32_t, VarId> vars_;
  std::unordered_map<uint32_t, ExprId> replaced_, exprs_;
};

}  // namespace heddle::kernel
