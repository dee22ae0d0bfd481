#include "compiler/kernel_fusions.h"

#include <algorithm>
#include <unordered_set>

namespace heddle::compiler {

std::vector<const hlo::Instr*> kernel_fusions(const hlo::Module& module) {
  std::unordered_set<const hlo::Computation*> inside;  // of fusions
  const std::vector<hlo::Computation*> callees_first = module.post_order();
  for (size_t c = callees_first.size(); c-- > 0;)
    for (const hlo::Instr* instr : callees_first[c]->instrs())
      if (instr->is(hlo::Opcode::fusion) || inside.count(callees_first[c]))
        inside.insert(instr->called().begin(), instr->called().end());
  std::vector<const hlo::Instr*> result;
  for (const hlo::Computation* computation : callees_first)
    for (const hlo::Instr* instr : computation->instrs())
      if (instr->is(hlo::Opcode::fusion) && !inside.count(computation)) result.push_back(instr);
  return result;
}

std::vector<bool> streamed_outputs(const hlo::Instr& fusion, const target::Target& target) {
  const hlo::Computation* entry = fusion.parent()->module()->entry();
  if (fusion.parent() != entry) return {};
  const int64_t least = 4 * (target.caches.size() > 1 ? target.caches[1].bytes : 2 << 20);
  auto leaves = [&](const hlo::Instr& value) {
    return value.shape().bytes() >= least &&
           std::all_of(value.users().begin(), value.users().end(),
                       [&](const hlo::Instr* user) { return user == entry->root(); });
  };
  if (!fusion.shape().is_tuple()) return {leaves(fusion)};
  std::vector<bool> result(fusion.shape().elements().size(), false);
  for (const hlo::Instr* user : fusion.users())
    if (user->is(hlo::Opcode::get_tuple_element))
      result[static_cast<size_t>(user->tuple_index())] = leaves(*user);
  return result;
}

}  // namespace heddle::compiler
