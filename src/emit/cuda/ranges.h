// Ranges of the s64 expressions of a kernel: indices that fit into 32 bits are computed in `int`,
// which costs a GPU half of what 64 bits do.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::emit::cuda {

struct IntRange {
  int64_t low = INT64_MIN, high = INT64_MAX;
  bool narrow() const { return low >= INT32_MIN && high <= INT32_MAX; }
};

class Ranges {
 public:
  explicit Ranges(const kernel::Kernel& kernel);
  const IntRange& of(kernel::ExprId id) const { return exprs_[id.index()]; }
  const IntRange& of(kernel::VarId id) const { return vars_[id.index()]; }

 private:
  void visit(const std::vector<kernel::Stmt>& body);
  void bind(kernel::VarId var, kernel::ExprId extent);
  void compute(kernel::ExprId root);
  IntRange derive(const kernel::Expr& expr) const;

  const kernel::Kernel& kernel_;
  std::vector<IntRange> exprs_, vars_;
  std::vector<bool> known_;
};

}  // namespace heddle::emit::cuda
