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

size_t first_leaf_of(const Instr* element) {
  const std::vector<tensor::Shape>& elements = element->operand(0)->shape().elements();
  size_t leaf = 0;
  for (int64_t i = 0; i < element->tuple_index(); ++i)
    leaf += leaf_count(elements[static_cast<size_t>(i)]);
  return leaf;
}

const Instr* root_of_leaf(const Instr* fusion, size_t leaf) {
  const Instr* root = fusion->called().at(0)->root();
  if (!root->is(Opcode::tuple)) return root;
  size_t i = 0;
  for (size_t count; leaf >= (count = leaf_count(root->operand(i)->shape())); ++i) leaf -= count;
  return root->operand(i);
}

Origin origin_of(const Instr* value) {
  while (value->is(Opcode::reshape) || value->is(Opcode::bitcast) || value->is(Opcode::copy))
    value = value->operand(0);
  if (!value->is(Opcode::get_tuple_element)) return {value};
  Origin tuple = origin_of(value->operand(0));
  tuple.leaf += first_leaf_of(value);
  return tuple;
}

}  // namespace heddle::hlo
