#include <algorithm>

#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {

KernelEmitter::At::At(KernelEmitter& emitter, int level) : guard_(emitter.b_) {
  // The first scope with a block of its own inside `level` has ended the block that code of
  // `level` belongs to. Without one that block is still open.
  for (int i = level + 1; i <= emitter.top(); ++i) {
    if (llvm::Instruction* entry = emitter.scopes_[static_cast<size_t>(i)].entry) {
      emitter.b_.SetInsertPoint(entry);
      return;
    }
  }
}

KernelEmitter::Inside::Inside(KernelEmitter& emitter, ScopeKind kind, llvm::Instruction* entry)
    : emitter_(emitter) {
  emitter.scopes_.push_back({kind, entry, {}, {}, {}});
}

KernelEmitter::Inside::~Inside() {
  emitter_.scopes_.pop_back();
  emitter_.statement_values_.clear();
}

int KernelEmitter::innermost(bool (*wanted)(ScopeKind)) const {
  for (int i = top(); i > 0; --i) {
    if (wanted(scopes_[static_cast<size_t>(i)].kind)) return i;
  }
  return 0;
}

int KernelEmitter::branch_level() const {
  return innermost([](ScopeKind kind) { return kind == ScopeKind::branch; });
}

int KernelEmitter::block_level() const {
  return innermost([](ScopeKind kind) { return kind != ScopeKind::straight; });
}

const Val* KernelEmitter::find(ExprId id) const {
  auto pinned = statement_values_.find(id.value);
  if (pinned != statement_values_.end()) return &pinned->second;
  for (int i = top(); i >= 0; --i) {
    const auto& values = scopes_[static_cast<size_t>(i)].values;
    auto it = values.find(id.value);
    if (it != values.end()) return &it->second;
  }
  return nullptr;
}

void KernelEmitter::remember(ExprId id, const Val& value) {
  auto& values =
      value.pinned ? statement_values_ : scopes_[static_cast<size_t>(value.level)].values;
  values.emplace(id.value, value);
}

Val KernelEmitter::join(std::initializer_list<const Val*> operands) const {
  Val result;
  result.level = branch_level();
  for (const Val* operand : operands) {
    result.level = std::max(result.level, operand->level);
    result.pinned |= operand->pinned;
  }
  if (result.pinned) result.level = top();
  return result;
}

}  // namespace heddle::emit
