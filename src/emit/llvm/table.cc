// Kernels with inner kernels: the inner kernels' functions, and for each phase one that iterates
// over its tables and calls them, on the rows' buffers and dimensions.
#include "emit/llvm/table.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>

#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {
namespace {

using llvm::Value;

constexpr int64_t kSpread = 40503;  // between the offsets of neighbouring rows

class TableEmitter {
 public:
  TableEmitter(const kernel::Kernel& kernel, const Isa& isa, llvm::Module& module)
      : kernel_(kernel), isa_(isa), module_(module), b_(module.getContext()) {}

  Status run() {
    for (const kernel::Kernel& inner : kernel_.inner) {
      kernel::Kernel named = inner;
      named.name = symbol(inner);
      HEDDLE_RETURN_IF_ERROR(KernelEmitter(named, isa_, module_, /*is_inner=*/true).run());
    }
    for (size_t p = 0; p < kernel_.phases.size(); ++p) phase(p);
    return {};
  }

 private:
  std::string symbol(const kernel::Kernel& inner) const {
    return fmt::format("{}_{}", kernel_.name, inner.name);
  }

  // Read-only numbers of the object; a pointer to the first.
  Value* numbers(const std::vector<int64_t>& values) {
    llvm::Constant* data = llvm::ConstantDataArray::get(module_.getContext(), values);
    return new llvm::GlobalVariable(module_, data->getType(), /*isConstant=*/true,
                                    llvm::GlobalValue::PrivateLinkage, data, "table");
  }

  Value* number(Value* table, Value* at) {
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateInBoundsGEP(b_.getInt64Ty(), table, at));
  }

  void phase(size_t index) {
    function_ = kernel_function(kernel_.name, index, isa_, module_);
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", function_));
    const kernel::Phase& phase = kernel_.phases[index];
    begin_ = function_->getArg(2);
    end_ = function_->getArg(3);
    tasks_ = std::max<int64_t>(kernel::task_count(kernel_, phase, {}), 1);
    size_t most = 1;
    for (const kernel::Group& group : phase.groups)
      for (const kernel::Instance& row : group.table) most = std::max(most, row.buffers.size());
    Value* buffers = b_.CreateAlloca(b_.getPtrTy(), b_.getInt64(most));
    for (const kernel::Group& group : phase.groups)
      if (!group.table.empty()) table(group, buffers);
    b_.CreateRetVoid();
  }

  // Of a row's n tasks a share begins at (n * begin + offset) / tasks: a share of [0, tasks) is the
  // same share of each row, and the offsets distribute rows of few tasks over the workers.
  Value* first_task(Value* share, Value* count, Value* offset) {
    Value* scaled = b_.CreateAdd(b_.CreateMul(count, share), offset);
    return b_.CreateUDiv(scaled, b_.getInt64(static_cast<uint64_t>(tasks_)));
  }

  void table(const kernel::Group& group, Value* buffers) {
    const kernel::Kernel& inner = kernel_.inner[static_cast<size_t>(group.inner)];
    const kernel::Phase& phase = inner.phases[static_cast<size_t>(group.inner_phase)];
    const auto width = static_cast<int64_t>(inner.global_count());
    const auto depth = static_cast<int64_t>(inner.dims.size());
    std::vector<int64_t> counts, offsets, places, dims;
    for (const kernel::Instance& row : group.table) {
      offsets.push_back(static_cast<int64_t>(counts.size()) * kSpread % tasks_);
      counts.push_back(kernel::task_count(inner, phase, row.dims));
      for (kernel::BufferId buffer : row.buffers)
        places.push_back(static_cast<int64_t>(buffer.index()));
      dims.insert(dims.end(), row.dims.begin(), row.dims.end());
    }
    Value *of_counts = numbers(counts), *of_offsets = numbers(offsets);
    Value* of_places = numbers(places);
    Value* of_dims = dims.empty() ? function_->getArg(1) : numbers(dims);

    llvm::LLVMContext& context = module_.getContext();
    auto block = [&] { return llvm::BasicBlock::Create(context, "", function_); };
    llvm::BasicBlock *entry = b_.GetInsertBlock(), *head = block(), *call = block(),
                     *next = block(), *end = block();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* row = b_.CreatePHI(b_.getInt64Ty(), 2);
    row->addIncoming(b_.getInt64(0), entry);
    Value* after = b_.CreateAdd(row, b_.getInt64(1));
    Value *count = number(of_counts, row), *offset = number(of_offsets, row);
    Value* from = first_task(begin_, count, offset);
    Value* to = first_task(end_, count, offset);
    b_.CreateCondBr(b_.CreateICmpSLT(from, to), call, next);

    b_.SetInsertPoint(call);
    Value* place = b_.CreateMul(row, b_.getInt64(static_cast<uint64_t>(width)));
    for (int64_t i = 0; i < width; ++i) {
      Value* which = number(of_places, b_.CreateAdd(place, b_.getInt64(static_cast<uint64_t>(i))));
      Value* buffer = b_.CreateLoad(
          b_.getPtrTy(), b_.CreateInBoundsGEP(b_.getPtrTy(), function_->getArg(0), which));
      b_.CreateStore(
          buffer, b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), buffers, static_cast<uint64_t>(i)));
    }
    Value* own_dims = b_.CreateInBoundsGEP(
        b_.getInt64Ty(), of_dims, b_.CreateMul(row, b_.getInt64(static_cast<uint64_t>(depth))));
    llvm::Function* body =
        module_.getFunction(fmt::format("{}_p{}", symbol(inner), group.inner_phase));
    b_.CreateCall(body, {buffers, own_dims, from, to, function_->getArg(4)});
    b_.CreateBr(next);

    b_.SetInsertPoint(next);
    row->addIncoming(after, next);
    b_.CreateCondBr(b_.CreateICmpULT(after, b_.getInt64(group.table.size())), head, end);
    b_.SetInsertPoint(end);
  }

  const kernel::Kernel& kernel_;
  const Isa& isa_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  Value *begin_ = nullptr, *end_ = nullptr;
  int64_t tasks_ = 1;  // of the phase
};

}  // namespace

Status emit_tables(const kernel::Kernel& kernel, const Isa& isa, llvm::Module& module) {
  return TableEmitter(kernel, isa, module).run();
}

}  // namespace heddle::emit
