#include "compiler/kernel_fusions.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "hlo/join.h"
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

// One flag per leaf of the fusion's results.
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
  if (hlo::join_of(fusion) == hlo::Join::table) {
    int64_t bytes = 0;
    for (const tensor::Shape& result : hlo::leaves_of(fusion.shape())) bytes += result.bytes();
    return std::vector<bool>(hlo::leaf_count(fusion.shape()), bytes >= least);
  }
  return flags(fusion, [&](const hlo::Instr& value) {
    return value.shape().bytes() >= least &&
           std::all_of(value.users().begin(), value.users().end(),
                       [&](const hlo::Instr* user) { return user == entry->root(); });
  });
}

StreamedParts streamed_parts(const hlo::Computation& computation,
                             const std::vector<bool>& streamed) {
  StreamedParts result;
  for (const hlo::Instr* part : computation.instrs())
    if (part->is(hlo::Opcode::fusion)) result[part].resize(hlo::leaf_count(part->shape()));
  const hlo::Instr* root = computation.root();
  for (size_t o = 0; o < streamed.size(); ++o) {
    const hlo::Instr* output = root->is(hlo::Opcode::tuple) ? root->operand(o) : root;
    const hlo::Origin from = hlo::origin_of(output);
    result.at(from.maker)[from.leaf] = streamed[o] && output->shape().rank() > 0;
  }
  for (const auto& [reader, flags] : result)
    for (const hlo::Instr* operand : reader->operands())
      if (const hlo::Origin from = hlo::origin_of(operand); result.count(from.maker))
        result.at(from.maker)[from.leaf] = false;
  return result;
}

}  // namespace heddle::compiler
