#pragma once

#include "emit/llvm/math_context.h"

namespace heddle::emit {

// The exact remainder of x / y with the sign of x, as C's fmod. A call, lane by lane, of a function
// that is made in the module on first use.
llvm::Value* emit_fmod(MathContext& context, llvm::Value* x, llvm::Value* y);

}  // namespace heddle::emit
