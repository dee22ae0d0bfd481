// The functions of math_*.cc, `math_<operator>` for every operator of kernel/ops.def that is one;
// math.cc chooses among them. Bounds: docs/numerics.md. By class (kernel/op_info.h):
//   inlined: for float and double alike
//   shared, binary: for double; float is converted. They may create blocks: only in a function
//     of their own
//   fast: for float. exp_fast requires x <= 0 (larger: right up to overflow); the others take all
#pragma once

#include "emit/llvm/math_kit.h"

namespace heddle::emit {

#define HEDDLE_MATH_plain(name)
#define HEDDLE_MATH_inlined(name) llvm::Value* math_##name(const MathKit& k, llvm::Value* x);
#define HEDDLE_MATH_shared(name) llvm::Value* math_##name(const MathKit& k, llvm::Value* x);
#define HEDDLE_MATH_fast(name) llvm::Value* math_##name(const MathKit& k, llvm::Value* x);
#define HEDDLE_MATH_binary(name) \
  llvm::Value* math_##name(const MathKit& k, llvm::Value* x, llvm::Value* y);
#define HEDDLE_KERNEL_OP(name, operands, types, op_class, ...) HEDDLE_MATH_##op_class(name)
#include "kernel/ops.def"
#undef HEDDLE_MATH_plain
#undef HEDDLE_MATH_inlined
#undef HEDDLE_MATH_shared
#undef HEDDLE_MATH_fast
#undef HEDDLE_MATH_binary

// exp(x + low) for |low| far below an ulp of x.
llvm::Value* math_exp_sum(const MathKit& k, llvm::Value* x, llvm::Value* low);

}  // namespace heddle::emit
