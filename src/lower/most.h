// An upper bound of an extent, if one is known: min(n - t0*512, 512) is at most 512.
#pragma once

#include <optional>

#include "kernel/kernel.h"

namespace heddle::lower {

inline std::optional<int64_t> most(const kernel::Kernel& kernel, kernel::ExprId id) {
  const kernel::Expr& expr = kernel.expr(id);
  if (expr.op == kernel::Op::constant) return expr.imm;
  if (expr.op != kernel::Op::min && expr.op != kernel::Op::max) return {};
  const auto a = most(kernel, expr.operands[0]), b = most(kernel, expr.operands[1]);
  if (a && b) return expr.op == kernel::Op::min ? std::min(*a, *b) : std::max(*a, *b);
  if (expr.op == kernel::Op::max) return {};
  return a ? a : b;
}

}  // namespace heddle::lower
