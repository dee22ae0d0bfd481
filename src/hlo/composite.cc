#include "hlo/composite.h"

#include <algorithm>

namespace heddle::hlo {

bool is_composite(const Computation& computation) {
  bool holds = false;
  for (const Instr* instr : computation.instrs()) {
    if (instr->is(Opcode::while_)) return false;
    holds |= instr->is(Opcode::fusion);
  }
  return holds;
}

}  // namespace heddle::hlo
