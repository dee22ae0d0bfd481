#include "compiler/equal_fusions.h"

#include <unordered_map>

#include "hlo/in_place.h"

namespace heddle::compiler {

using hlo::Computation;
using hlo::Instr;

bool are_equal(const Computation& a, const Computation& b) {
  if (&a == &b) return true;
  const auto &left = a.instrs(), &right = b.instrs();
  if (left.size() != right.size()) return false;
  std::unordered_map<const Instr*, const Instr*> partner;
  for (size_t i = 0; i < left.size(); ++i) {
    const Instr &x = *left[i], &y = *right[i];
    if (x.opcode() != y.opcode() || !(x.shape() == y.shape()) || !(x.attrs() == y.attrs()) ||
        x.operands().size() != y.operands().size() || x.called().size() != y.called().size() ||
        hlo::is_in_place(x) != hlo::is_in_place(y))
      return false;
    for (size_t o = 0; o < x.operands().size(); ++o)
      if (partner.at(x.operands()[o]) != y.operands()[o]) return false;
    for (size_t c = 0; c < x.called().size(); ++c)
      if (!are_equal(*x.called()[c], *y.called()[c])) return false;
    partner.emplace(&x, &y);
  }
  return partner.at(a.root()) == b.root();
}

uint64_t shallow_hash(const Computation& computation) {
  uint64_t sum = 0;
  for (const Instr* instr : computation.instrs()) {
    sum = sum * 31 + static_cast<uint64_t>(instr->opcode());
    sum = sum * 31 + hlo::hash(instr->attrs());
    sum = sum * 31 + static_cast<uint64_t>(instr->shape().is_array() ? instr->shape().elems() : 0);
  }
  return sum;
}

}  // namespace heddle::compiler
