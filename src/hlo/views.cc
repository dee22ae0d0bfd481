#include "hlo/views.h"

namespace heddle::hlo {

namespace {

bool is_row_major(const tensor::Shape& shape) {
  return shape.is_array() && shape.is_static() &&
         (!shape.layout() || shape.layout()->is_row_major());
}

}  // namespace

bool is_view(const Instr* instr) {
  return (instr->is(Opcode::reshape) || instr->is(Opcode::bitcast)) &&
         is_row_major(instr->shape()) && is_row_major(instr->operand(0)->shape()) &&
         instr->shape().type() == instr->operand(0)->shape().type();
}

const Instr* behind_views(const Instr* value) {
  while (is_view(value)) value = value->operand(0);
  return value;
}

Instr* behind_views(Instr* value) {
  while (is_view(value)) value = value->operand(0);
  return value;
}

bool is_view_or_element(const Instr* instr) {
  return is_view(instr) || instr->is(Opcode::get_tuple_element);
}

const Instr* behind_views_and_elements(const Instr* value) {
  while (is_view_or_element(value)) value = value->operand(0);
  return value;
}

}  // namespace heddle::hlo
