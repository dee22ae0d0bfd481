// Kernels whose groups are tables of inner kernels.
#pragma once

#include <llvm/IR/Module.h>

#include "base/error.h"
#include "emit/llvm/isa.h"
#include "kernel/kernel.h"

namespace heddle::emit {

// Adds the functions <name>_p<phase>, and those of the inner kernels, which only these call.
Status emit_tables(const kernel::Kernel& kernel, const Isa& isa, llvm::Module& module);

}  // namespace heddle::emit
