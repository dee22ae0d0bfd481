// Private to lower: statements of a kernel written anew, with variables and loads exchanged.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::lower {

class Rewriter {
 public:
  explicit Rewriter(kernel::Kernel* kernel) : kernel_(*kernel) {}

  // The variable is read as this from now on.
  void replace(kernel::VarId var, kernel::ExprId by) { vars_[var.value] = by; }
  // A load with its operands written anew: what it becomes; nothing: itself.
  std::function<std::optional<kernel::ExprId>(const kernel::Expr&)> load;
  // A copy's own variables (loops, lets); without it they stay.
  bool fresh = false;

  kernel::ExprId expr(kernel::ExprId id);
  std::vector<kernel::Stmt> block(const std::vector<kernel::Stmt>& body);

 private:
  kernel::Kernel& kernel_;
  std::unordered_map<uint32_t, kernel::ExprId> vars_, exprs_;
};

// The sum of variables times factors, and a constant, that an index is; nothing: it is none.
// `lets`: what the named values among the variables are.
struct Linear {
  std::unordered_map<uint32_t, int64_t> factors;  // by VarId
  int64_t constant = 0;
};
using Lets = std::unordered_map<uint32_t, kernel::ExprId>;
std::optional<Linear> linear(const kernel::Kernel& kernel, kernel::ExprId id, const Lets& lets);

}  // namespace heddle::lower
