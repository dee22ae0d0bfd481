// Private to emit/llvm: the context for emitting arithmetic.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "emit/llvm/isa.h"

namespace heddle::emit {

// The insertion point, which may be anywhere in a block, and the target's features.
struct MathContext {
  llvm::IRBuilder<>& builder;
  const Isa& isa;
};

}  // namespace heddle::emit
