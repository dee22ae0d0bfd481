#include "hlo/combiner.h"

namespace heddle::hlo {

bool is_commutative(Opcode opcode) {
  switch (opcode) {
    case Opcode::add:
    case Opcode::multiply:
    case Opcode::maximum:
    case Opcode::minimum:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
      return true;
    default:
      return false;
  }
}

std::optional<Opcode> combiner_of(const Computation& computation) {
  const Instr* root = computation.root();
  if (computation.parameters().size() != 2 || root->operands().size() != 2) return std::nullopt;
  const Instr *a = computation.parameters()[0], *b = computation.parameters()[1];
  const bool in_order = root->operand(0) == a && root->operand(1) == b;
  const bool swapped = root->operand(0) == b && root->operand(1) == a;
  if (!is_commutative(root->opcode()) || !(in_order || swapped)) return std::nullopt;
  return root->opcode();
}

}  // namespace heddle::hlo
