// Statements of one kernel written into another one, with its own variables and numbers.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

// Copies from `from` into `to`, both of which outlive it; `to` is another kernel. The first buffers
// of `from` are `buffers` there; the others are added. One variable, one copy: what is copied by
// one Graft shares them.
class Graft {
 public:
  Graft(const Kernel& from, const std::vector<BufferId>& buffers, Kernel* to);

  // What an expression of `from` becomes instead of its copy; nothing: its copy.
  std::function<std::optional<ExprId>(const Expr&)> exchange;

  BufferId buffer(size_t number) const { return buffers_[number]; }
  VarId var(VarId id);
  ExprId expr(ExprId id);  // an invalid one stays so
  std::vector<Stmt> block(const std::vector<Stmt>& body);
  Group group(const Group& group);  // a grid, not a table

 private:
  const Kernel& from_;
  Kernel& to_;
  std::vector<ExprId> exprs_;
  std::vector<VarId> vars_;
  std::vector<BufferId> buffers_;
};

}  // namespace heddle::kernel
