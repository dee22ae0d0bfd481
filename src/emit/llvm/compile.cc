#include "emit/llvm/compile.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "emit/llvm/codegen.h"
#include "emit/llvm/kernel_emitter.h"
#include "emit/llvm/table.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::emit {

Result<Compiled> compile(const std::vector<const kernel::Kernel*>& kernels,
                         const target::Target& target, Form form, Effort effort) {
  Isa isa = Isa::of(target);
  HEDDLE_ASSIGN_OR_RETURN(auto machine, make_target_machine(target, isa, effort));
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
  if (form == Form::object_and_ir) {
    llvm::raw_string_ostream stream(result.ir);
    module.print(stream, nullptr);
  }
  HEDDLE_ASSIGN_OR_RETURN(result.object, compile_module(module, *machine, form == Form::assembly));
  return result;
}

namespace {

Result<std::vector<kernel::Kernel>> parse(const std::vector<std::string_view>& texts) {
  std::set<std::string_view> seen;
  std::vector<kernel::Kernel> kernels;
  for (std::string_view text : texts) {
    if (!seen.insert(text).second) continue;
    HEDDLE_ASSIGN_OR_RETURN(kernel::Kernel kernel, kernel::parse_kernel(text));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// A link of that name is replaced; its target does not change.
Status write(const std::filesystem::path& path, const std::string& bytes) {
  std::error_code error;
  std::filesystem::remove(path, error);
  std::ofstream file(path, std::ios::binary);
  file << bytes << std::flush;
  if (!file.good()) return machine_error("--dump: cannot write {}", path.string());
  return {};
}

}  // namespace

Result<Compiled> compile_texts(const std::vector<std::string_view>& texts,
                               std::string_view target_text, Effort effort) {
  HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::parse_target(target_text));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<kernel::Kernel> kernels, parse(texts));
  std::vector<const kernel::Kernel*> pointers;
  for (const kernel::Kernel& kernel : kernels) pointers.push_back(&kernel);
  return compile(pointers, target, Form::object, effort);
}

Status dump_texts(const std::vector<std::string_view>& texts, std::string_view target_text,
                  const std::string& directory, Effort effort) {
  HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::parse_target(target_text));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<kernel::Kernel> kernels, parse(texts));
  for (const kernel::Kernel& kernel : kernels) {
    const std::filesystem::path base = std::filesystem::path(directory) / ("4-" + kernel.name);
    HEDDLE_ASSIGN_OR_RETURN(const Compiled compiled,
                            compile({&kernel}, target, Form::object_and_ir, effort));
    HEDDLE_ASSIGN_OR_RETURN(const Compiled assembly,
                            compile({&kernel}, target, Form::assembly, effort));
    HEDDLE_RETURN_IF_ERROR(write(base.string() + ".ll", compiled.ir));
    HEDDLE_RETURN_IF_ERROR(write(base.string() + ".s", assembly.object));
    HEDDLE_RETURN_IF_ERROR(write(base.string() + ".o", compiled.object));
  }
  return {};
}

}  // namespace heddle::emit
