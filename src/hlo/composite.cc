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

bool is_table(const Computation& computation) {
  return is_composite(computation) &&
         std::all_of(
             computation.instrs().begin(), computation.instrs().end(), [](const Instr* instr) {
               return !instr->is(Opcode::fusion) || instr->attrs_as<FusionAttrs>().kind == kRowKind;
             });
}

}  // namespace heddle::hlo
