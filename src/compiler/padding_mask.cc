#include "compiler/padding_mask.h"

namespace heddle::compiler {
namespace {

using hlo::Instr, hlo::Opcode;

const Instr* behind_shapes(const Instr* value) {
  while (value->is(Opcode::broadcast) || value->is(Opcode::reshape)) value = value->operand(0);
  return value;
}

// `fusion`: what the value is in; null: the entry.
bool is_inside(const Instr* value, const Instr* fusion, const hlo::Computation& entry) {
  value = behind_shapes(value);
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
  if (!value->is(Opcode::compare) ||
      value->attrs_as<hlo::CompareAttrs>().direction != hlo::Direction::lt)
    return false;
  const Instr *place = behind_shapes(value->operand(0)), *limit = behind_shapes(value->operand(1));
  while (limit->is(Opcode::multiply)) limit = behind_shapes(limit->operand(0));
  return place->is(Opcode::iota) && limit->is(Opcode::parameter) && limit->shape().is_scalar();
}

}  // namespace

bool is_padding_mask(const Instr* select, const Instr* fusion, const hlo::Computation& entry) {
  return select->is(Opcode::select) && is_inside(select->operand(0), fusion, entry);
}

}  // namespace heddle::compiler
