// Private to fuse: reductions that a kernel would make wait.
#pragma once

#include <unordered_map>

#include "fuse/groups.h"

namespace heddle::fuse {

class Waits {
 public:
  explicit Waits(const hlo::Computation& computation);

  // A reduction of much to little, in a kernel that waits for more products or loops than it does
  // alone: what it reads would be kept until then. No (code `waits`): it stays apart.
  Decision may_join(const Instr* instr, const Group& group) const;

 private:
  std::unordered_map<const Instr*, int> before_;  // products and loops on the longest way to it
};

}  // namespace heddle::fuse
