#include "fuse/many_sums.h"

#include <algorithm>
#include <unordered_set>

namespace heddle::fuse {

using hlo::Instr;
using hlo::Opcode;

namespace {
constexpr size_t kMany = 8;
}  // namespace

bool puts_many_together(const Instr* instr) {
  if (!instr->shape().is_scalar() || instr->is(Opcode::reduce)) return false;
  std::unordered_set<const Instr*> seen{instr};
  std::vector<const Instr*> work{instr};
  size_t sums = 0;
  while (!work.empty() && sums <= kMany) {
    const Instr* at = work.back();
    work.pop_back();
    if (at->is(Opcode::reduce)) {
      ++sums;
      continue;
    }
    for (const Instr* operand : at->operands())
      if (operand->shape().is_scalar() && seen.insert(operand).second) work.push_back(operand);
  }
  return sums > kMany;
}

bool puts_many_together(const std::vector<Instr*>& members) {
  return is_of_scalars(members) &&
         std::any_of(members.begin(), members.end(),
                     [](const Instr* member) { return puts_many_together(member); });
}

bool is_of_scalars(const std::vector<Instr*>& members) {
  return std::all_of(members.begin(), members.end(),
                     [](const Instr* member) { return member->shape().is_scalar(); });
}

}  // namespace heddle::fuse
