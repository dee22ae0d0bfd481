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

// Error: a triple that this build cannot compile for. Thread-safe.
Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const target::Target& target,
                                                                 const Isa& isa);
// The module's object file. Error: what LLVM complained of, or a symbol that the loader does not
// know (kOutsideSymbols).
Result<std::string> compile_module(llvm::Module& module, llvm::TargetMachine& machine);

// All that an object may ask of the program that loads it.
inline constexpr const char* kOutsideSymbols[] = {"memcpy", "memset"};

}  // namespace heddle::emit
