// One function per phase: the tasks of all groups are numbered in sequence, each group is a loop
// over its part of [begin, end).
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include <algorithm>
#include <cctype>

#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {

using llvm::Value;

llvm::Function* kernel_function(const std::string& kernel, size_t phase, const Isa& isa,
                                llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* number = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, pointer, number, number, pointer}, false);
  llvm::Function* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                                    fmt::format("{}_p{}", kernel, phase), module);
  llvm::AttrBuilder attributes(context);
  attributes.addAttribute(llvm::Attribute::NoUnwind);
  // The features are the target's list on top of the plain architecture; tune-cpu only tunes.
  attributes.addAttribute("target-cpu", "x86-64");
  attributes.addAttribute("tune-cpu", isa.tune_cpu);
  attributes.addAttribute("target-features", isa.features);
  attributes.addAttribute("prefer-vector-width", std::to_string(isa.simd_bits));
  attributes.addAttribute("min-legal-vector-width", std::to_string(isa.simd_bits));
  function->addFnAttrs(attributes);
  for (unsigned i : {0u, 1u, 4u}) function->addParamAttr(i, llvm::Attribute::NoUndef);
  return function;
}

KernelEmitter::KernelEmitter(const kernel::Kernel& kernel, const Isa& isa, llvm::Module& module,
                             bool is_inner)
    : kernel_(kernel),
      isa_(isa),
      is_inner_(is_inner),
      module_(module),
      b_(module.getContext()),
      math_{b_, isa_},
      bindings_(kernel.vars.size()) {}

Status KernelEmitter::run() {
  bool plain = !kernel_.name.empty() && !kernel_.name.starts_with("llvm.") &&
               std::all_of(kernel_.name.begin(), kernel_.name.end(),
                           [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  if (!plain) {
    return user_error("kernel '{}': a name that functions can have wants letters, digits and _",
                      kernel_.name);
  }
  for (size_t i = 0; i < kernel_.exprs().size(); ++i) {  // operands have smaller ids
    int height = 0;
    for (ExprId operand : kernel_.exprs()[i].operands) {
      height = std::max(height, heights_[operand.index()] + 1);
    }
    heights_.push_back(height);
  }
  for (size_t i = 0; i < kernel_.phases.size(); ++i) {
    phase_that_fits(i);
    if (!error_.empty()) return user_error("kernel {}, phase {}: {}", kernel_.name, i, error_);
    std::string message;
    llvm::raw_string_ostream stream(message);
    if (llvm::verifyFunction(*function_, &stream)) {  // our bug; the process may live on
      return machine_error("kernel {}, phase {}: the code made of it is not valid, a bug: {}",
                           kernel_.name, i, message);
    }
  }
  return {};
}

// Two instructions of a kind can start per cycle, with a latency of some four cycles in a chain:
// eight chains, if there are registers for them.
void KernelEmitter::phase_that_fits(size_t index) {
  side_by_side_ = isa_.avx512 ? 8 : 4;
  const int64_t statements = statements_;
  phase(index);
  while (is_too_long_ && side_by_side_ > 1) {
    function_->eraseFromParent();
    side_by_side_ /= 2;
    statements_ = statements;
    statement_values_.clear();
    error_.clear();
    is_too_long_ = false;
    phase(index);
  }
}

void KernelEmitter::phase(size_t index) {
  function_ = kernel_function(kernel_.name, index, isa_, module_);
  if (is_inner_) function_->setLinkage(llvm::Function::InternalLinkage);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", function_));
  registers_.assign(kernel_.buffers.size(), {});
  dims_.assign(kernel_.dims.size(), {});
  streams_ = uses_tiles_ = false;
  {
    Inside inside(*this, ScopeKind::function);
    Value* first = b_.getInt64(0);
    for (const kernel::Group& g : kernel_.phases[index].groups) {
      Value* count = b_.getInt64(1);
      for (const kernel::GridDim& dim : g.grid) {
        Value* extent = eval(dim.extent).v;
        count = b_.CreateMul(count, larger(b_, extent, b_.getInt64(0)));
      }
      Value* last = b_.CreateAdd(first, count);
      group(g, first, last);
      first = last;
    }
  }
  if (streams_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  configure_tiles();
  b_.CreateRetVoid();
  check_length();
  if (error_.empty()) promote_registers();
}

// Tasks [first, last) of the phase are this group's.
void KernelEmitter::group(const kernel::Group& group, Value* first, Value* last) {
  if (!error_.empty()) return;
  first_tiles_.clear();
  next_tile_ = 0;
  std::vector<Val> extents;
  for (const kernel::GridDim& dim : group.grid) extents.push_back(eval(dim.extent));
  auto clamp = [&](Value* x) { return smaller(b_, larger(b_, x, first), last); };
  // Task numbers inside the group, from 0.
  Value* begin = b_.CreateSub(clamp(function_->getArg(2)), first);
  Value* end = b_.CreateSub(clamp(function_->getArg(3)), first);
  Bounds bounds = Bounds::exactly(1);
  for (const Val& extent : extents) {
    bounds = bounds * Bounds{0, std::max<int64_t>(extent.bounds.high, 0)};
  }
  bounds = {0, std::max<int64_t>(bounds.high, 1) - 1};
  emit_loop({begin, end, 1, bounds, true},
            [&](const Val& number) { task(group, number, extents); });
}

// The point of the grid: the digits of the task's number, the last dimension running fastest.
void KernelEmitter::task(const kernel::Group& group, const Val& number,
                         const std::vector<Val>& extents) {
  Val rest = number;
  for (size_t i = group.grid.size(); i-- > 0;) {
    Binding binding{Binding::Kind::value, 0, rest, {}, top()};
    binding.base.bounds = {0, std::max<int64_t>(extents[i].bounds.high, 1) - 1};
    auto* known = llvm::dyn_cast<llvm::ConstantInt>(extents[i].v);
    if (known && known->getSExtValue() <= 1) {
      binding.kind = Binding::Kind::constant;
    } else if (i > 0) {
      // An extent that is not positive leaves no task; the code must still not divide by it.
      Value* divisor = larger(b_, extents[i].v, b_.getInt64(1));
      binding.base.v = b_.CreateURem(rest.v, divisor);
      rest.v = b_.CreateUDiv(rest.v, divisor);
    }
    bindings_[group.grid[i].var.index()] = binding;
  }
  block(group.body);
}

// Register buffers are stack variables until here; they are promoted to SSA values.
void KernelEmitter::promote_registers() {
  std::vector<llvm::AllocaInst*> slots;
  for (const auto& buffer : registers_) {
    for (llvm::AllocaInst* slot : buffer) {
      if (slot) slots.push_back(slot);
    }
  }
  if (slots.empty()) return;
  llvm::DominatorTree tree(*function_);
  llvm::PromoteMemToReg(slots, tree);
}

}  // namespace heddle::emit
