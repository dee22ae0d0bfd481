#include "compiler/donated.h"
#include "hlo/leaves.h"
#include "hlo/views.h"

#include <algorithm>

namespace heddle::compiler {

using hlo::Instr;
using hlo::Opcode;

namespace {

// The leaf of the fusion's results that is the value; -1: none is.
int leaf_of(const Instr& fusion, const Instr* value) {
  const hlo::Origin from = hlo::origin_of(value);
  return from.maker == &fusion ? static_cast<int>(from.leaf) : -1;
}

// The only operand that is the parameter; -1: none, or several.
int operand_of(const Instr& fusion, const Instr* parameter) {
  int found = -1;
  for (size_t o = 0; o < fusion.operands().size(); ++o) {
    if (hlo::behind_views(fusion.operand(o)) != parameter) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(o);
  }
  return found;
}

// The output that gets an input's memory: an element of the root tuple, or the root; null: neither.
const Instr* output_of(const Instr* root, const hlo::Alias& alias) {
  const bool is_tuple = root->is(Opcode::tuple);
  if (!alias.parameter_index.empty() || alias.output_index.size() != (is_tuple ? 1 : 0))
    return nullptr;
  return is_tuple ? root->operand(static_cast<size_t>(alias.output_index[0])) : root;
}

bool is_in_part(const stitch::Stitched& stitched, size_t output) {
  return output < stitched.in_part.size() && stitched.in_part[output];
}

}  // namespace

std::vector<int> inputs_to_overwrite(const Instr& fusion, const stitch::Stitched& stitched) {
  std::vector<int> result = stitched.in_place;
  const hlo::Computation* entry = fusion.parent()->module()->entry();
  if (fusion.parent() != entry) return result;
  for (const hlo::Alias& alias : entry->module()->input_output_alias) {
    const Instr* value = output_of(entry->root(), alias);
    const int output = value ? leaf_of(fusion, value) : -1;
    if (output < 0 || static_cast<size_t>(output) >= result.size()) continue;
    const int input = operand_of(fusion, entry->parameters()[static_cast<size_t>(alias.parameter)]);
    if (input < 0) continue;
    const std::vector<int> allowed = stitch::overwritable(stitched, static_cast<size_t>(output));
    if (std::find(allowed.begin(), allowed.end(), input) == allowed.end()) continue;
    if (is_in_part(stitched, static_cast<size_t>(output))) continue;
    std::replace(result.begin(), result.end(), input, -1);
    result[static_cast<size_t>(output)] = input;
  }
  // Outputs that lost their input may get another.
  for (size_t o = 0; o < result.size(); ++o)
    for (int input : stitch::overwritable(stitched, o))
      if (result[o] < 0 && std::find(result.begin(), result.end(), input) == result.end())
        result[o] = input;
  return result;
}

}  // namespace heddle::compiler
