#include "compiler/padding_mask.h"

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

}  // namespace heddle::compiler
