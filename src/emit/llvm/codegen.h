// LLVM's code generator: a module of kernels to one relocatable object.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "emit/llvm/isa.h"

namespace llvm {
class TargetMachine;
}

namespace heddle::emit {

// LLVM's effort on the code of kernels; results have the same bits. least: quick instruction
// selection and register allocation, for kernels that run a few times. The numbers are those of
// heddle_emit's `effort` (emit.h).
enum class Effort { least = 0, less = 1, full = 2 };

// Error: a triple that this build cannot compile for. Thread-safe.
Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const target::Target& target,
                                                                 const Isa& isa,
                                                                 Effort effort = Effort::full);
// The module's object file, or its assembly. Error: LLVM's message, or (of an object) an undefined
// symbol that the loader does not provide (kOutsideSymbols).
Result<std::string> compile_module(llvm::Module& module, llvm::TargetMachine& machine,
                                   bool assembly = false);

// All symbols that an object may import from the program that loads it.
inline constexpr const char* kOutsideSymbols[] = {"memcpy", "memset"};

}  // namespace heddle::emit
