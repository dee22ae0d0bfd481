#include "compiler/kernel_fusions.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "hlo/leaves.h"

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

namespace {

int64_t least_streamed_bytes(const target::Target& target) {
  return 4 * target.second_cache_bytes();
}

// Only the root of its computation reads it, through views.
bool is_result_only(const hlo::Instr& value) {
  return std::all_of(value.users().begin(), value.users().end(), [&](const hlo::Instr* user) {
    return user == value.parent()->root() ||
           (user->is(hlo::Opcode::reshape) && is_result_only(*user));
  });
}

// A flag a leaf of the fusion's results.
std::vector<bool> flags(const hlo::Instr& fusion,
                        const std::function<bool(const hlo::Instr&)>& of) {
  if (!fusion.shape().is_tuple()) return {of(fusion)};
  std::vector<bool> result(hlo::leaves_of(fusion.shape()).size(), false);
  std::vector<const hlo::Instr*> tuples{&fusion};
  for (size_t i = 0; i < tuples.size(); ++i)
    for (const hlo::Instr* user : tuples[i]->users()) {
      if (!user->is(hlo::Opcode::get_tuple_element)) continue;
      if (user->shape().is_tuple())
        tuples.push_back(user);
      else
        result[hlo::origin_of(user).leaf] = of(*user);
    }
  return result;
}

}  // namespace

std::vector<bool> streamed_outputs(const hlo::Instr& fusion, const target::Target& target) {
  const hlo::Computation* entry = fusion.parent()->module()->entry();
  if (fusion.parent() != entry) return {};
  const int64_t least = least_streamed_bytes(target);
  return flags(fusion, [&](const hlo::Instr& value) {
    return value.shape().bytes() >= least &&
           std::all_of(value.users().begin(), value.users().end(),
                       [&](const hlo::Instr* user) { return user == entry->root(); });
  });
}

std::vector<bool> streamed_outputs_inside(const hlo::Instr& fusion, const target::Target& target) {
  int64_t bytes = 0;
  for (const hlo::Instr* result : fusion.parent()->root()->operands())
    bytes += result->shape().bytes();
  if (bytes < least_streamed_bytes(target)) return {};
  return flags(fusion, [](const hlo::Instr& value) {
    return value.shape().rank() > 0 && is_result_only(value);
  });
}

}  // namespace heddle::compiler
