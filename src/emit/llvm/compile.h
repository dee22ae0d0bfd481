// The C++ side of emit.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/kernel.h"
#include "target/target.h"

namespace heddle::emit {

struct Compiled {
  std::string object;  // ELF, relocatable
  std::string ir;      // LLVM's text, if asked for
};

// Kernels of different names; they are verified first. Thread-safe, deterministic.
Result<Compiled> compile(const std::vector<const kernel::Kernel*>& kernels,
                         const target::Target& target, bool want_ir = false);
// Equal texts are compiled once.
Result<Compiled> compile_texts(const std::vector<std::string_view>& kernels,
                               std::string_view target);

}  // namespace heddle::emit
