// Arithmetic operators of kernels (kernel.h, "Semantics") on LLVM values, scalars or vectors.
// No operation here has undefined behaviour or can trap, whatever its operands are, so that the
// emitter may compute speculatively and in inactive lanes.
#pragma once

#include "emit/llvm/math_context.h"
#include "emit/llvm/types.h"
#include "kernel/kernel.h"

namespace heddle::emit {

// Facts about integer operands, which allow cheaper forms.
struct Facts {
  bool left_not_negative = false;
  bool right_positive = false;  // and hence not zero
};

// Operands are of `type`; comparisons and is_finite give i1. Operators: all of ops.def but leaves,
// functions (math.h), convert, bitcast, lane and shuffle_xor.
llvm::Value* emit_unary(MathContext& context, kernel::Op op, Type type, llvm::Value* x);
llvm::Value* emit_binary(MathContext& context, kernel::Op op, Type type, llvm::Value* a,
                         llvm::Value* b, Facts facts = {});
llvm::Value* emit_fma(MathContext& context, llvm::Value* a, llvm::Value* b, llvm::Value* c);

}  // namespace heddle::emit
