#include "compiler/padding_mask.h"

#include <algorithm>
#include <map>

#include "hlo/symbol.h"

namespace heddle::compiler {
namespace {

using hlo::Instr, hlo::Opcode;

// `fusion`: the fusion that contains the value; null: the entry.
bool is_inside(const Instr* value, const Instr* fusion, const hlo::Computation& entry) {
  value = hlo::behind_shapes(value);
  if (value->is(Opcode::get_tuple_element) && value->operand(0)->is(Opcode::fusion)) {
    const Instr *maker = value->operand(0), *root = maker->called().at(0)->root();
    return root->is(Opcode::tuple) &&
           is_inside(root->operand(static_cast<size_t>(value->tuple_index())), maker, entry);
  }
  if (value->is(Opcode::fusion) && !value->shape().is_tuple())
    return is_inside(value->called().at(0)->root(), value, entry);
  if (value->is(Opcode::parameter) && fusion && value->parent() == fusion->called().at(0) &&
      fusion->parent() == &entry)
    return is_inside(fusion->operand(static_cast<size_t>(value->parameter_number())), nullptr,
                     entry);
  return hlo::is_padding_mask(value);
}

}  // namespace

bool is_padding_mask(const Instr* select, const Instr* fusion, const hlo::Computation& entry) {
  return select->is(Opcode::select) && is_inside(select->operand(0), fusion, entry);
}

bool mixes_padding(const Instr* instr) {
  return instr->is(Opcode::dot) || instr->is(Opcode::convolution) || instr->is(Opcode::reduce) ||
         instr->is(Opcode::reduce_window) || instr->is(Opcode::gather);
}

namespace {

// What mask_padding tells from operands: an elementwise operator needs all of them.
class Known {
 public:
  Known(const Instr* fusion, const hlo::Computation& entry) : fusion_(fusion), entry_(entry) {}

  bool may_be(const Instr* value) {
    const auto [known, added] = known_.emplace(value, true);
    if (added) known_[value] = find(value);
    return known_[value];
  }

 private:
  bool find(const Instr* value) {
    if (is_padding_mask(value, fusion_, entry_)) return true;
    // The same everywhere along a dimension, thus also in its padding: the maximum of a row, say.
    if (value->shape().is_scalar() || value->is(Opcode::broadcast)) return true;
    if (mixes_padding(value)) return false;
    const std::vector<Instr*>& operands = value->operands();
    if (value->is(Opcode::select))
      return may_be(operands[0]) && (may_be(operands[1]) || may_be(operands[2]));
    const bool moves = value->is(Opcode::transpose) || value->is(Opcode::reshape) ||
                       value->is(Opcode::bitcast) || value->is(Opcode::copy);
    if (!moves && !hlo::has_trait(value->opcode(), hlo::Trait::elementwise)) return true;
    return std::all_of(operands.begin(), operands.end(),
                       [&](const Instr* operand) { return may_be(operand); });
  }

  const Instr* fusion_;
  const hlo::Computation& entry_;
  std::map<const Instr*, bool> known_;
};

}  // namespace

bool padding_may_be_known(const Instr* value, const Instr* fusion, const hlo::Computation& entry) {
  return Known(fusion, entry).may_be(value);
}

}  // namespace heddle::compiler
