// StateArrays: what a loaded program keeps from run to run (program::StateArray). Its memory is the
// hidden inputs and outputs of all its contexts, in place of each other's; and may be that of
// several programs with the same states, which then go on where one of them stopped.
//
// Thread safety: a context holds the turn while it runs; all else is for one thread at a time.
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
  // The start values of `program`, where there is nothing yet. Errors: they hold what has other
  // start values (user); no memory (machine).
  Status begin(const program::Program& program);

  // Copies of one as it is between two runs; `array` has its bytes. Waits for a run under way.
  Status read(size_t i, std::span<char> array);
  Status write(size_t i, std::span<const char> array);
  // 64-byte aligned, of the host.
  void* memory(size_t i) { return arrays_[i].mutable_data(); }
  // Waits until no other context runs. False: `cancellation` was asked for meanwhile, and taken.
  bool take_turn(std::unique_lock<std::timed_mutex>& turn, Cancellation& cancellation);

 private:
  Status check(size_t i, size_t bytes) const;
  std::timed_mutex turn_;
  bool begun_ = false;
  std::vector<program::StateArray> starts_;
  std::vector<tensor::Literal> arrays_;  // u8, of this object alone
};

}  // namespace heddle::runtime
