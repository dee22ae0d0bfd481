#include "emit/llvm/compile.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <set>

#include "emit/llvm/codegen.h"
#include "emit/llvm/kernel_emitter.h"
#include "emit/llvm/table.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::emit {

Result<Compiled> compile(const std::vector<const kernel::Kernel*>& kernels,
                         const target::Target& target, bool want_ir) {
  Isa isa = Isa::of(target);
  HEDDLE_ASSIGN_OR_RETURN(auto machine, make_target_machine(target, isa));
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  module.setTargetTriple(target.llvm_triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  std::set<std::string_view> names;
  for (const kernel::Kernel* kernel : kernels) {
    if (!names.insert(kernel->name).second) {
      return user_error("kernel {}: two different kernels have this name", kernel->name);
    }
    if (Status valid = kernel::verify(*kernel); !valid) {
      return error_in("kernel " + kernel->name, valid.error());
    }
    HEDDLE_RETURN_IF_ERROR(kernel->inner.empty() ? KernelEmitter(*kernel, isa, module).run()
                                                 : emit_tables(*kernel, isa, module));
  }
  Compiled result;
  if (want_ir) {
    llvm::raw_string_ostream stream(result.ir);
    module.print(stream, nullptr);
  }
  HEDDLE_ASSIGN_OR_RETURN(result.object, compile_module(module, *machine));
  return result;
}

Result<Compiled> compile_texts(const std::vector<std::string_view>& texts,
                               std::string_view target_text) {
  HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::parse_target(target_text));
  std::set<std::string_view> seen;
  std::vector<kernel::Kernel> kernels;
  for (std::string_view text : texts) {
    if (!seen.insert(text).second) continue;
    HEDDLE_ASSIGN_OR_RETURN(kernel::Kernel kernel, kernel::parse_kernel(text));
    kernels.push_back(std::move(kernel));
  }
  std::vector<const kernel::Kernel*> pointers;
  for (const kernel::Kernel& kernel : kernels) pointers.push_back(&kernel);
  return compile(pointers, target);
}

}  // namespace heddle::emit
