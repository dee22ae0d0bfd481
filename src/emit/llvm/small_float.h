// f16, bf16 and the f8 types, which are held as bits, from and to f32.
#pragma once

#include "emit/llvm/math.h"
#include "emit/llvm/types.h"

namespace heddle::emit {

// Rounded to nearest even, by tensor::float_to_bits. `x`: float or a vector of it.
llvm::Value* f32_to_small(MathContext& context, Type type, llvm::Value* x);
// Exact. `bits`: i16 or i8, or a vector.
llvm::Value* small_to_f32(MathContext& context, Type type, llvm::Value* bits);

}  // namespace heddle::emit
