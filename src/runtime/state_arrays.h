// StateArrays: the arrays that a loaded program keeps from run to run (program::StateArray). All
// contexts of the program use this memory for their hidden state inputs and outputs, updated in
// place; several programs with the same states may share it, and each then continues from the last
// run of any of them.
//
// Thread safety: a context holds the turn while it runs; everything else is for one thread at a
// time.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "runtime/cancellation.h"
#include "tensor/literal.h"

namespace heddle::runtime {

class StateArrays {
 public:
  // Sets the start values of `program` unless values exist already. Errors: existing values belong
  // to different states (user); no memory (machine).
  Status begin(const program::Program& program);

  // Copies a state to or from `array`, which has the state's size. Waits for the current run.
  Status read(size_t i, std::span<char> array);
  Status write(size_t i, std::span<const char> array);
  // 64-byte aligned host memory.
  void* memory(size_t i) { return arrays_[i].mutable_data(); }
  // Waits until no other context runs. False: the wait was cancelled; the request has been taken.
  bool take_turn(std::unique_lock<std::timed_mutex>& turn, Cancellation& cancellation);

 private:
  Status check(size_t i, size_t bytes) const;
  std::timed_mutex turn_;
  bool begun_ = false;
  std::vector<program::StateArray> starts_;
  std::vector<tensor::Literal> arrays_;  // u8, not shared
};

}  // namespace heddle::runtime
