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
  std::vector<bool> result(hlo::leaf_count(fusion.shape()), false);
  std::vector<std::pair<const hlo::Instr*, size_t>> tuples{{&fusion, 0}};  // and their first leaf
  for (size_t i = 0; i < tuples.size(); ++i) {
    const auto [tuple, begin] = tuples[i];
    std::vector<size_t> first{begin};  // leaf of an element
    for (const tensor::Shape& element : tuple->shape().elements())
      first.push_back(first.back() + hlo::leaf_count(element));
    for (const hlo::Instr* user : tuple->users()) {
      if (!user->is(hlo::Opcode::get_tuple_element)) continue;
      const size_t leaf = first[static_cast<size_t>(user->tuple_index())];
      if (user->shape().is_tuple())
        tuples.emplace_back(user, leaf);
      else
        result[leaf] = of(*user);
    }
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

bool streams_inside(const hlo::Computation& table, const target::Target& target) {
  int64_t bytes = 0;
  for (const hlo::Instr* result : table.root()->operands()) bytes += result->shape().bytes();
  return bytes >= least_streamed_bytes(target);
}

std::vector<bool> streamed_outputs_inside(const hlo::Instr& fusion) {
  return flags(fusion, [](const hlo::Instr& value) {
    return value.shape().rank() > 0 && is_result_only(value);
  });
}

}  // namespace heddle::compiler
