#include "emit/llvm/codegen.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "base/check.h"

namespace heddle::emit {
namespace {

// LLVM gives up on some inputs by calling this and exits if it returns; the exception returns to
// compile_module. LLVM's memory leaks, which is better than losing the process.
[[noreturn]] void on_fatal_error(void*, const char* reason, bool) {
  throw std::runtime_error(reason);
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    llvm::install_fatal_error_handler(on_fatal_error);
    // For the whole process: reduce_strength() replaces it.
    llvm::cl::Option* option = llvm::cl::getRegisteredOptions().lookup("disable-lsr");
    HEDDLE_CHECK(option && !option->addOccurrence(1, "disable-lsr", "true"));
  });
}

// Keeps errors; warnings and remarks are dropped. Without it LLVM would print and exit.
class Diagnostics : public llvm::DiagnosticHandler {
 public:
  explicit Diagnostics(std::string& message) : message_(message) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error || !message_.empty()) return true;
    llvm::raw_string_ostream stream(message_);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }

 private:
  std::string& message_;
};

// LLVM's strength reduction of addresses, only in small functions, because its time grows faster
// than the code's size: on large unrolled bodies it was up to two thirds of all compile time and
// changed the code's speed by less than could be measured.
void reduce_strength(llvm::Module& module, llvm::TargetMachine& machine) {
  constexpr unsigned kMostInstructions = 500;
  llvm::legacy::FunctionPassManager passes(&module);
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createLoopStrengthReducePass());
  passes.doInitialization();
  for (llvm::Function& function : module)
    if (!function.isDeclaration() && function.getInstructionCount() <= kMostInstructions)
      passes.run(function);
  passes.doFinalization();
}

Status check_symbols(llvm::StringRef object) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(object, "kernels"), /*InitContent=*/false);
  if (!file) return user_error("{}", llvm::toString(file.takeError()));
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!flags || !name) {
      if (!flags) llvm::consumeError(flags.takeError());
      if (!name) llvm::consumeError(name.takeError());
      continue;
    }
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined) || name->empty()) continue;
    bool known = std::any_of(std::begin(kOutsideSymbols), std::end(kOutsideSymbols),
                             [&](const char* outside) { return *name == outside; });
    if (!known) {
      return user_error(
          "the target's features lead to a call of {}, which kernels may not make; "
          "does the target lack sse4.1?",
          name->str());
    }
  }
  return {};
}

// LLVM would print a warning about an unknown name and ignore it.
Status check_names(const target::Target& target, const llvm::Target& llvm_target) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvm_target.createMCSubtargetInfo(target.llvm_triple, "x86-64", ""));
  if (!target.llvm_cpu.empty() && !info->isCPUStringValid(target.llvm_cpu)) {
    return user_error("target {}: llvm_cpu: got {}, wanted a processor that LLVM knows",
                      target.name, target.llvm_cpu);
  }
  llvm::ArrayRef<llvm::SubtargetFeatureKV> known = info->getAllProcessorFeatures();
  for (const std::string& feature : target.features) {
    bool found = std::any_of(known.begin(), known.end(),
                             [&](const auto& row) { return feature == row.Key; });
    if (!found) {
      return user_error("target {}: features: got {}, wanted names that LLVM knows", target.name,
                        feature);
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const target::Target& target,
                                                                 const Isa& isa, Effort effort) {
  initialize_llvm();
  std::string message;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.llvm_triple, message);
  if (target.kind != target::DeviceKind::cpu || !found ||
      !llvm::StringRef(target.llvm_triple).starts_with("x86_64-") ||
      !llvm::Triple(target.llvm_triple).isOSBinFormatELF()) {
    return user_error(
        "target {}: got triple {}, wanted x86_64 and ELF, as x86_64-unknown-linux-gnu", target.name,
        target.llvm_triple.empty() ? "none" : target.llvm_triple);
  }
  if (!target.has("sse4.1")) {
    return user_error("target {}: feature sse4.1 is missing, and kernels need it", target.name);
  }
  HEDDLE_RETURN_IF_ERROR(check_names(target, *found));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // fma is written fma
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.llvm_triple, "x86-64", isa.features, options,
                                 llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                 effort == Effort::least  ? llvm::CodeGenOptLevel::None
                                 : effort == Effort::less ? llvm::CodeGenOptLevel::Less
                                                          : llvm::CodeGenOptLevel::Default));
  if (!machine) return user_error("target {}: LLVM cannot compile for it", target.name);
  return machine;
}

Result<std::string> compile_module(llvm::Module& module, llvm::TargetMachine& machine,
                                   bool assembly) {
  std::string message;
  module.getContext().setDiagnosticHandler(std::make_unique<Diagnostics>(message));
  llvm::SmallString<0> object;
  try {
    if (machine.getOptLevel() >= llvm::CodeGenOptLevel::Default) reduce_strength(module, machine);
    llvm::raw_svector_ostream stream(object);
    llvm::legacy::PassManager passes;
    const auto form =
        assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    if (machine.addPassesToEmitFile(passes, stream, nullptr, form, /*DisableVerify=*/true)) {
      return user_error("LLVM cannot write objects for this target");
    }
    passes.run(module);
  } catch (const std::runtime_error& error) {
    return user_error("LLVM: {}", error.what());
  }
  if (!message.empty()) return user_error("LLVM: {}", message);
  if (!assembly) HEDDLE_RETURN_IF_ERROR(check_symbols(object));
  return std::string(object);
}

}  // namespace heddle::emit
