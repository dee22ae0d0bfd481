// Kernels written anew: the one walk over expressions and statements that changes of kernels, and
// copies of one kernel in another, go through. What changes is said by hooks; without any, what is
// made is equal to what was there.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

class Rewriter {
 public:
  // In place: what is made goes into the kernel that it is made of; buffers and variables stay.
  explicit Rewriter(Kernel* kernel);
  // From `from` into `to`, another kernel; both outlive this. The first buffers of `from` are
  // `buffers` there; the others are added. One variable, one copy: all that is made shares them.
  Rewriter(const Kernel& from, const std::vector<BufferId>& buffers, Kernel* to);

  // The variable is read as this from now on.
  void replace(VarId var, ExprId by) { replaced_[var.value] = by; }

  // What stands for an expression, given as it was; its operands are not needed then. Nothing: it
  // is written anew.
  std::function<std::optional<ExprId>(ExprId, const Expr&)> instead;
  // What stands for an expression, given with operands, variable and buffer written anew.
  std::function<std::optional<ExprId>(const Expr&)> made;
  // Puts a statement, given as it was and as it is written anew with all in it, or what stands for
  // it.
  std::function<void(const Stmt& from, Stmt made, std::vector<Stmt>* to)> statement;
  // In place: operands, and parts of statements, that stay as they are.
  enum class Part : uint8_t { extent, value, mask, indices, source_indices };
  std::function<bool(const Expr&, size_t operand)> keeps_operand;
  std::function<bool(const Stmt&, Part)> keeps_part;
  // In place: what copied statements bind (loops, lets) are new variables.
  bool fresh = false;
  // An expression is written once, for all who use it; else for each place where it stands.
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
