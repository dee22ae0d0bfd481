// Interleaves copies of a loop's body. A processor looks ahead over some hundred instructions at
// most, in program order: of long dependent chains (an exponential is one) in sequence it sees two
// or three, of interleaved ones all.
#pragma once

#include <llvm/IR/BasicBlock.h>

#include <vector>

#include "kernel/kernel.h"

namespace heddle::emit {

// Whether the statements read nothing that they store outside registers, except at the very index
// of the store: then copies of them, each for its own elements, may run in any order.
bool reads_nothing_stored(const kernel::Kernel& kernel, const std::vector<kernel::Stmt>& body);
// Whether the statements compute functions, whose code is a long chain.
bool has_long_chain(const kernel::Kernel& kernel, const std::vector<kernel::Stmt>& body);

// Records where copies end, as they are emitted at the end of `block`, and then interleaves them,
// one instruction of each in turn; prefetches are spread evenly, since many at once would wait for
// each other's lines and delay the loads after them. Changes nothing if a copy has left the block
// or two of them share a register buffer that is stored.
class Interleaver {
 public:
  explicit Interleaver(llvm::BasicBlock* block);
  void copy_ends(llvm::BasicBlock* current);
  void run();

 private:
  bool shares_registers() const;

  llvm::BasicBlock* block_;
  llvm::Instruction* before_;  // the last one before the copies
  bool left_ = false;
  std::vector<std::vector<llvm::Instruction*>> copies_;
};

}  // namespace heddle::emit
