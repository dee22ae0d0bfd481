// Vector math: functions as straight-line polynomial code, no calls. Each is written once for a
// scalar or any vector of lanes; bounds in ulp stand in docs/numerics.md.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "emit/llvm/isa.h"
#include "kernel/kernel.h"

namespace heddle::emit {

// Where code goes, and what the target can do. The insertion point may be anywhere in a block.
struct MathContext {
  llvm::IRBuilder<>& builder;
  const Isa& isa;
};

// `x` (and `y`): float, double, or a vector of either; the result has the same type. Operators:
// those of kernel::is_math; pow and atan2 take two.
llvm::Value* emit_math(MathContext& context, kernel::Op op, llvm::Value* x);
llvm::Value* emit_math(MathContext& context, kernel::Op op, llvm::Value* x, llvm::Value* y);

}  // namespace heddle::emit
