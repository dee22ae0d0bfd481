// Which commands of a list are certain to have run when another one begins.
//
// Sequential: all earlier ones. Predecessor: those from which given edges lead to it, whatever runs
// concurrently. With edges of data and control alone the ordering holds for any streams; with the
// order inside each stream added it holds for these streams.
#pragma once

#include <cstddef>
#include <vector>

namespace heddle::plan {

class Ordering {
 public:
  static Ordering sequential() { return {}; }
  // before[i]: the commands that i waits for, all lower than i.
  static Ordering predecessor(const std::vector<std::vector<size_t>>& before);

  bool is_sequential() const { return clock_.empty(); }
  bool runs_before(size_t first, size_t second) const;

 private:
  // Vector clocks: commands form chains; by command, how far each chain has run when it ends.
  std::vector<size_t> chain_, place_;  // by command; places from 1 on
  std::vector<std::vector<size_t>> clock_;
};

}  // namespace heddle::plan
