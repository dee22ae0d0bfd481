#include "hlo/leaves.h"

namespace heddle::hlo {

std::vector<tensor::Shape> leaves_of(const tensor::Shape& shape) {
  if (!shape.is_tuple()) return {shape};
  std::vector<tensor::Shape> leaves;
  for (const tensor::Shape& element : shape.elements())
    for (tensor::Shape& leaf : leaves_of(element)) leaves.push_back(std::move(leaf));
  return leaves;
}

size_t leaf_count(const tensor::Shape& shape) {
  if (!shape.is_tuple()) return 1;
  size_t count = 0;
  for (const tensor::Shape& element : shape.elements()) count += leaf_count(element);
  return count;
}

Origin origin_of(const Instr* value) {
  while (value->is(Opcode::reshape) || value->is(Opcode::bitcast) || value->is(Opcode::copy))
    value = value->operand(0);
  if (!value->is(Opcode::get_tuple_element)) return {value};
  Origin tuple = origin_of(value->operand(0));
  const std::vector<tensor::Shape>& elements = value->operand(0)->shape().elements();
  for (int64_t i = 0; i < value->tuple_index(); ++i)
    tuple.leaf += leaf_count(elements[static_cast<size_t>(i)]);
  return tuple;
}

}  // namespace heddle::hlo
