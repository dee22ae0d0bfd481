#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {

using kernel::LoopKind;
using kernel::StmtKind;
using llvm::Value;

namespace {

constexpr int64_t kMaxStatements = 1 << 16;  // emitted, all copies counted

}  // namespace

void KernelEmitter::block(const Block& body) {
  for (const Stmt& stmt : body) {
    if (!error_.empty()) return;
    statement(stmt);
    statement_values_.clear();
  }
}

bool KernelEmitter::check_length() {
  if (function_->getInstructionCount() <= kMaxInstructions) return true;
  is_too_long_ |= error_.empty();
  fail("more than {} instructions after unrolling", kMaxInstructions);
  return false;
}

void KernelEmitter::statement(const Stmt& stmt) {
  if (++statements_ > kMaxStatements) {
    return fail("more than {} statements after unrolling", kMaxStatements);
  }
  if (statements_ % 64 == 0 && !check_length()) return;
  switch (stmt.kind) {
    case StmtKind::loop:
      switch (stmt.loop) {
        case LoopKind::serial:
          return serial_loop(stmt);
        case LoopKind::unrolled:
          return unrolled_loop(stmt);
        case LoopKind::vector:
          return vector_loop(stmt);
        default:
          return fail("thread, subgroup, block and parallel loops are not for a CPU's tasks");
      }
    case StmtKind::let:
      return let(stmt);
    case StmtKind::store:
      return store(stmt);
    case StmtKind::branch:
      return branch(stmt);
    case StmtKind::prefetch:
      return prefetch(stmt);
    case StmtKind::async_copy:
      return copy(stmt);
    case StmtKind::barrier:
    case StmtKind::async_wait:
      return;  // a task is one thread, and copies are made at once
    case StmtKind::mma:
      return mma(stmt);
    case StmtKind::fragment_clear:
    case StmtKind::fragment_load:
    case StmtKind::fragment_store:
      return move_fragment(stmt);
  }
}

void KernelEmitter::let(const Stmt& stmt) {
  Val value = eval(stmt.value);
  Binding& binding = bindings_[stmt.var.index()];
  binding = {};
  if (!value.pinned) {
    binding.kind = Binding::Kind::expression;
    binding.expression = stmt.value;
    return;
  }
  value.pinned = false;  // read once; from here on it is a value of this scope
  value.level = top();
  binding.kind = Binding::Kind::value;
  binding.base = value;
}

void KernelEmitter::guarded(Value* condition, const std::function<void()>& body) {
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "", function_);
  llvm::Instruction* entry = b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  {
    Inside inside(*this, ScopeKind::branch, entry);
    body();
  }
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// A body for the lanes of `mask` only; skipped if there are none.
void KernelEmitter::masked(const Block& body, Value* mask) {
  if (body.empty()) return;
  Value* outer = mask_;
  if (outer) mask = b_.CreateAnd(outer, mask);
  auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (constant && constant->isZeroValue()) return;
  guarded(b_.CreateOrReduce(mask), [&] {
    mask_ = mask;
    block(body);
    mask_ = outer;
  });
}

void KernelEmitter::branch(const Stmt& stmt) {
  Val condition = eval(stmt.value);
  if (!condition.uniform()) {
    Value* mask = vector(condition, b_.getInt1Ty());
    statement_values_.clear();
    masked(stmt.body, mask);
    if (!stmt.otherwise.empty()) masked(stmt.otherwise, b_.CreateNot(mask));
    return;
  }
  statement_values_.clear();
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition.v)) {
    Inside inside(*this, ScopeKind::straight);  // names of the block end with it
    return block(known->isZero() ? stmt.otherwise : stmt.body);
  }
  if (!stmt.body.empty()) guarded(condition.v, [&] { block(stmt.body); });
  if (!stmt.otherwise.empty()) {
    guarded(b_.CreateNot(condition.v), [&] { block(stmt.otherwise); });
  }
}

}  // namespace heddle::emit
