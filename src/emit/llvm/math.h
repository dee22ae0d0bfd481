// Vector math: functions as polynomial code, without library calls; long ones are shared functions
// (math_shared.h). Each is written once for a scalar or any vector of lanes; bounds in ulp are in
// docs/numerics.md.
#pragma once

#include "emit/llvm/math_context.h"
#include "kernel/kernel.h"

namespace heddle::emit {

// `x` (and `y`): float, double, or a vector of either; the result has the same type. Operators:
// those of kernel::is_math; pow and atan2 take two.
llvm::Value* emit_math(MathContext& context, kernel::Op op, llvm::Value* x);
llvm::Value* emit_math(MathContext& context, kernel::Op op, llvm::Value* x, llvm::Value* y);

}  // namespace heddle::emit
