#include "hlo/in_place.h"

#include <algorithm>
#include <string_view>

namespace heddle::hlo {

namespace {

std::vector<const Instr*> leaves_of(const Computation& fusion) {
  const Instr* root = fusion.root();
  if (!root->is(Opcode::tuple)) return {root};
  return {root->operands().begin(), root->operands().end()};
}

int64_t bytes_of(const tensor::Shape& shape) {
  if (!shape.is_tuple()) return shape.is_array() ? shape.bytes() : 0;
  int64_t bytes = 0;
  for (const tensor::Shape& element : shape.elements()) bytes += bytes_of(element);
  return bytes;
}

}  // namespace

bool is_in_place(const Instr& update) {
  return (update.is(Opcode::dynamic_update_slice) || update.is(Opcode::scatter)) &&
         update.facts().in_place;
}

void set_in_place(Instr* update) { update->facts().in_place = true; }

namespace {

// The array that the leaf updates, and the number of bytes written to it.
std::pair<const Instr*, int64_t> array_of(const Instr* leaf) {
  if (!leaf->is(Opcode::scatter)) return {leaf->operand(0), leaf->operand(1)->shape().bytes()};
  int64_t bytes = 0;
  for (; leaf->is(Opcode::scatter); leaf = leaf->operand(0))
    bytes += leaf->operand(2)->shape().bytes();
  return {leaf, bytes};
}

}  // namespace

std::vector<int64_t> updated_parameters(const Computation& fusion) {
  std::vector<int64_t> result;
  const tensor::Shape& shape = fusion.root()->shape();
  if (shape.is_tuple() && !fusion.root()->is(Opcode::tuple))
    return std::vector<int64_t>(shape.elements().size(), -1);
  for (const Instr* leaf : leaves_of(fusion))
    result.push_back(is_in_place(*leaf) ? array_of(leaf).first->parameter_number() : -1);
  return result;
}

int64_t stored_bytes(const Instr& fusion) {
  int64_t bytes = bytes_of(fusion.shape());
  for (const Instr* leaf : leaves_of(*fusion.called()[0]))
    if (is_in_place(*leaf)) bytes += array_of(leaf).second - leaf->shape().bytes();
  return bytes;
}

}  // namespace heddle::hlo
