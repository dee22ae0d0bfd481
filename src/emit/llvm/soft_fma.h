#pragma once

#include "emit/llvm/math_context.h"

namespace heddle::emit {

// x * y + z rounded once, without the instruction. Float by exact arithmetic in double; double by
// integers, with a call per lane.
llvm::Value* emit_soft_fma(MathContext& context, llvm::Value* x, llvm::Value* y, llvm::Value* z);

}  // namespace heddle::emit
