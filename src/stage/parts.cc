#include "stage/parts.h"

#include <algorithm>

namespace heddle::stage {

using hlo::Instr;
using hlo::Opcode;

namespace {

constexpr size_t kFewestParts = 8;

bool is_index_map(const Instr* value) {
  switch (value->opcode()) {
    case Opcode::broadcast:
    case Opcode::slice:
    case Opcode::transpose:
    case Opcode::iota:
    case Opcode::gather:
    case Opcode::pad:
    case Opcode::reverse:
    case Opcode::copy:
    case Opcode::dynamic_slice:
    case Opcode::concatenate:
    case Opcode::constant:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool is_stored_by_parts(const Instr& instr, const Members* members) {
  if (!instr.is(Opcode::concatenate) || instr.operands().size() < kFewestParts) return false;
  const tensor::Shape& shape = instr.shape();
  int64_t inside = 1;  // elements per index of the joined dimension
  for (int64_t d = instr.dimensions()[0] + 1; d < shape.rank(); ++d) inside *= shape.dim(d);
  if (inside <= 1) return false;
  const auto is_made = [&](const Instr* part) { return members && members->is_input(part); };
  return std::all_of(instr.operands().begin(), instr.operands().end(), [&](const Instr* part) {
    while (!is_made(part) && (part->is(Opcode::reshape) || part->is(Opcode::bitcast)))
      part = part->operand(0);
    return part->shape().elems() > 0 && (is_made(part) || !is_index_map(part));
  });
}

}  // namespace heddle::stage
