#include "emit/llvm/interleave.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "kernel/op_info.h"

namespace heddle::emit {

namespace {

using kernel::Buffer;
using kernel::BufferId;
using kernel::ExprId;
using kernel::Kernel;
using kernel::Space;
using kernel::Stmt;
using kernel::StmtKind;

// Every expression below the statements, once.
void each_expression(const Kernel& kernel, const std::vector<Stmt>& body,
                     const std::function<void(const kernel::Expr&)>& see) {
  std::vector<ExprId> waiting;
  std::function<void(const std::vector<Stmt>&)> collect = [&](const std::vector<Stmt>& stmts) {
    for (const Stmt& stmt : stmts) {
      for (ExprId id : expressions(stmt)) waiting.push_back(id);
      collect(stmt.body);
      collect(stmt.otherwise);
    }
  };
  collect(body);
  std::unordered_set<uint32_t> seen;
  while (!waiting.empty()) {
    const ExprId id = waiting.back();
    waiting.pop_back();
    if (!seen.insert(id.value).second) continue;
    const kernel::Expr& expr = kernel.expr(id);
    see(expr);
    for (ExprId operand : expr.operands) waiting.push_back(operand);
  }
}

bool is_fetch(const llvm::Instruction* instr) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(instr);
  return call && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
}

}  // namespace

bool reads_nothing_stored(const Kernel& kernel, const std::vector<Stmt>& body) {
  std::vector<const Stmt*> stores;
  bool plain = true;
  for (const Stmt& stmt : body) {
    plain &= stmt.kind == StmtKind::let || stmt.kind == StmtKind::store ||
             stmt.kind == StmtKind::prefetch;
    if (stmt.kind == StmtKind::store && kernel.buffer(stmt.buffer).space != Space::reg)
      stores.push_back(&stmt);
  }
  if (!plain) return false;
  bool apart = true;
  each_expression(kernel, body, [&](const kernel::Expr& expr) {
    if (expr.op != kernel::Op::load || kernel.buffer(expr.buffer).space == Space::reg) return;
    apart &= std::none_of(stores.begin(), stores.end(), [&](const Stmt* store) {
      const bool same = expr.buffer == store->buffer && expr.operands == store->indices;
      return !same && share_bytes(kernel, expr.buffer, store->buffer);
    });
  });
  return apart;
}

bool has_long_chain(const Kernel& kernel, const std::vector<Stmt>& body) {
  bool found = false;
  each_expression(kernel, body,
                  [&](const kernel::Expr& expr) { found |= kernel::is_math(expr.op); });
  return found;
}

Interleaver::Interleaver(llvm::BasicBlock* block)
    : block_(block), before_(block->empty() ? nullptr : &block->back()) {}

void Interleaver::copy_ends(llvm::BasicBlock* current) {
  left_ |= current != block_ || block_->getTerminator() != nullptr;
  if (left_) return;
  auto next = before_ ? std::next(before_->getIterator()) : block_->begin();
  copies_.emplace_back();
  for (; next != block_->end(); ++next)
    if (!llvm::isa<llvm::PHINode>(*next)) copies_.back().push_back(&*next);
  if (!block_->empty()) before_ = &block_->back();
}

bool Interleaver::shares_registers() const {
  struct Use {
    size_t copy;
    bool several = false, stored = false;
  };
  std::unordered_map<const llvm::Value*, Use> uses;
  for (size_t c = 0; c < copies_.size(); ++c) {
    for (const llvm::Instruction* instr : copies_[c]) {
      const llvm::Value* pointer = llvm::getPointerOperand(instr);
      if (!pointer || !llvm::isa<llvm::AllocaInst>(pointer)) continue;
      Use& use = uses.emplace(pointer, Use{c}).first->second;
      use.several |= use.copy != c;
      use.stored |= llvm::isa<llvm::StoreInst>(instr);
    }
  }
  return std::any_of(uses.begin(), uses.end(),
                     [](const auto& use) { return use.second.several && use.second.stored; });
}

void Interleaver::run() {
  if (left_ || copies_.size() < 2 || shares_registers()) return;
  // A shared value is in the first copy that uses it, so an instruction waits for its operands.
  std::unordered_set<const llvm::Value*> waiting;
  std::vector<llvm::Instruction*> fetches;
  size_t left = 0;
  for (auto& copy : copies_) {
    for (llvm::Instruction* instr : copy)
      if (is_fetch(instr)) fetches.push_back(instr);
    std::erase_if(copy, is_fetch);
    waiting.insert(copy.begin(), copy.end());
    left += copy.size();
  }
  auto is_ready = [&](const llvm::Instruction* instr) {
    return std::none_of(instr->op_begin(), instr->op_end(),
                        [&](const llvm::Use& use) { return waiting.count(use.get()) > 0; });
  };
  const size_t between = left / (fetches.size() + 1) + 1;
  size_t moved = 0, fetched = 0;
  auto place = [&](llvm::Instruction* instr) { instr->moveBefore(*block_, block_->end()); };
  std::vector<size_t> at(copies_.size(), 0);
  while (moved < left) {
    for (size_t c = 0; c < copies_.size(); ++c) {
      if (at[c] == copies_[c].size() || !is_ready(copies_[c][at[c]])) continue;
      place(copies_[c][at[c]]);
      waiting.erase(copies_[c][at[c]++]);
      const bool due = ++moved / between > fetched;
      if (due && fetched < fetches.size() && is_ready(fetches[fetched])) place(fetches[fetched++]);
    }
  }
  while (fetched < fetches.size()) place(fetches[fetched++]);
}

}  // namespace heddle::emit
