// The simplifications that Kernel::add makes: of integers, and of selects and guarded loads with a
// constant condition. Floating point is left alone.
#pragma once

#include <optional>

#include "kernel/kernel.h"

namespace heddle::kernel {

// A simpler node with the value of `expr`, if there is one. May reorder the operands of `expr`
// (constants of commutative operations go to the right).
std::optional<ExprId> simplify(Kernel& kernel, Expr& expr);

}  // namespace heddle::kernel
