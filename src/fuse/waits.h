// Private to fuse: reductions that a kernel would delay.
#pragma once

#include <unordered_map>

#include "fuse/groups.h"

namespace heddle::fuse {

class Waits {
 public:
  explicit Waits(const hlo::Computation& computation);

  // No (code `waits`): the reduction makes little of much, and the kernel waits for more products
  // or loops than the reduction alone does: its input would be kept until then.
  Decision may_join(const Instr* instr, const Group& group) const;

 private:
  std::unordered_map<const Instr*, int> before_;  // products and loops on the longest path to it
};

}  // namespace heddle::fuse
