// Op::convert: exact by tensor/type.h (round to nearest even; float to integer truncates, clamps,
// NaN is 0), for scalars and vectors, by instructions where the target has exact ones.
#pragma once

#include "emit/llvm/math.h"
#include "emit/llvm/types.h"

namespace heddle::emit {

// Preconditions: kernel::can_convert(from, to); `x` is held as types.h says.
llvm::Value* emit_convert(MathContext& context, Type from, Type to, llvm::Value* x);

}  // namespace heddle::emit
