// Functions too long to stand inline: made in the module once for a type, and called.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "emit/llvm/math_kit.h"

namespace heddle::emit {

// Calls the internal function `name` for arguments of this type; on first use `body` makes it, at
// the end of a fresh function whose blocks are its own to arrange.
using SharedBody = llvm::function_ref<llvm::Value*(const MathKit&, llvm::ArrayRef<llvm::Value*>)>;
llvm::Value* call_shared(MathContext& context, const char* name, llvm::Type* result,
                         llvm::ArrayRef<llvm::Value*> arguments, SharedBody body);

}  // namespace heddle::emit
