// Functions too long to inline: created in the module once per type, and called.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "emit/llvm/math_kit.h"

namespace heddle::emit {

// Calls the internal function `name` for arguments of this type; on first use `body` emits it into
// a new function, in which it may create blocks.
using SharedBody = llvm::function_ref<llvm::Value*(const MathKit&, llvm::ArrayRef<llvm::Value*>)>;
llvm::Value* call_shared(MathContext& context, const char* name, llvm::Type* result,
                         llvm::ArrayRef<llvm::Value*> arguments, SharedBody body);

}  // namespace heddle::emit
