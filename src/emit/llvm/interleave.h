// Copies of a loop's body side by side. A processor looks ahead over some hundred instructions at
// most, in the order in which they stand: of long dependent chains (an exponential is one) that
// stand one behind the other it sees two or three, of interleaved ones all.
#pragma once

#include <llvm/IR/BasicBlock.h>

#include <vector>

#include "kernel/kernel.h"

namespace heddle::emit {

// Nothing that the statements store outside of registers is read by them, but at the very place
// where they store: copies of them, each for elements of its own, may be run in any order.
bool reads_nothing_stored(const kernel::Kernel& kernel, const std::vector<kernel::Stmt>& body);
// The statements have functions in them, whose code is a long chain.
bool has_long_chain(const kernel::Kernel& kernel, const std::vector<kernel::Stmt>& body);

// Notes where copies end, as they are emitted at the end of `block`, and then mixes them, an
// instruction of each in turn; prefetches stand evenly between the others, since many at once would
// wait for each other's lines and hold up the loads behind them. Changes nothing where a copy has
// left the block or two of them share a register buffer.
class Interleaver {
 public:
  explicit Interleaver(llvm::BasicBlock* block);
  void copy_ends(llvm::BasicBlock* current);
  void run();

 private:
  bool shares_registers() const;

  llvm::BasicBlock* block_;
  llvm::Instruction* before_;  // the last one in front of the copies
  bool left_ = false;
  std::vector<std::vector<llvm::Instruction*>> copies_;
};

}  // namespace heddle::emit
