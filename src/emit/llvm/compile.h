// The C++ side of emit.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "emit/llvm/codegen.h"
#include "kernel/kernel.h"
#include "target/target.h"

namespace heddle::emit {

struct Compiled {
  std::string object;  // ELF, relocatable
  std::string ir;      // LLVM's text, if asked for
};

enum class Form { object, object_and_ir, assembly };  // assembly: the text, as `object`

// The kernels must have different names; they are verified first. Thread-safe, deterministic.
Result<Compiled> compile(const std::vector<const kernel::Kernel*>& kernels,
                         const target::Target& target, Form form = Form::object,
                         Effort effort = Effort::full);
// Equal texts are compiled once.
Result<Compiled> compile_texts(const std::vector<std::string_view>& kernels,
                               std::string_view target, Effort effort = Effort::full);

// Compiles each kernel alone, into files of the directory (emit.h). Error (machine): a failed
// write.
Status dump_texts(const std::vector<std::string_view>& kernels, std::string_view target,
                  const std::string& directory, Effort effort = Effort::full);

}  // namespace heddle::emit
