// Private to emit/llvm: what arithmetic is written with.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "emit/llvm/isa.h"

namespace heddle::emit {

// Where code goes, and what the target can do. The insertion point may be anywhere in a block.
struct MathContext {
  llvm::IRBuilder<>& builder;
  const Isa& isa;
};

}  // namespace heddle::emit
