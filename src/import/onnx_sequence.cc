// Sequences and optionals. Their lengths are known at import; elements pass through as they are.
#include <algorithm>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"
#include "import/onnx_ragged.h"

namespace heddle::import {
namespace {

Outputs elements_as_outputs(const std::vector<Value*>& elements) {
  return {elements.begin(), elements.end()};
}

// A position, counted from the end where negative. `end`: the place behind the last one is one too.
int64_t position(Op& op, size_t input, size_t length, bool end) {
  const auto count = static_cast<int64_t>(length);
  const int64_t given = op.known_int(input, "position");
  const int64_t at = given < 0 ? given + count : given;
  if (at < 0 || at > count || (at == count && !end))
    op.fail("position {} in a sequence of {}", given, count);
  return at;
}

Outputs sequence_empty(Op& op) {
  op.ignore({"dtype"});
  return {Output::sequence({})};
}

Outputs sequence_construct(Op& op) {
  Outputs elements;
  for (size_t i = 0; i < op.inputs(); ++i) {
    op.shape(i);  // a tensor
    elements.emplace_back(op.value(i));
  }
  return {Output::sequence(std::move(elements))};
}

Outputs sequence_at(Op& op) {
  const std::vector<Value*>& elements = op.sequence(0);
  return {elements[static_cast<size_t>(position(op, 1, elements.size(), false))]};
}

Outputs sequence_length(Op& op) {
  Literal length(Shape::scalar(Type::s64));
  length.set_s64(0, static_cast<int64_t>(op.sequence(0).size()));
  return {length};
}

Outputs sequence_insert(Op& op) {
  Outputs elements = elements_as_outputs(op.sequence(0));
  op.shape(1);
  const int64_t at =
      op.has(2) ? position(op, 2, elements.size(), true) : static_cast<int64_t>(elements.size());
  elements.insert(elements.begin() + at, Output(op.value(1)));
  return {Output::sequence(std::move(elements))};
}

Outputs sequence_erase(Op& op) {
  Outputs elements = elements_as_outputs(op.sequence(0));
  if (elements.empty()) op.fail("erases from an empty sequence");
  const int64_t at = op.has(1) ? position(op, 1, elements.size(), false)
                               : static_cast<int64_t>(elements.size()) - 1;
  elements.erase(elements.begin() + at);
  return {Output::sequence(std::move(elements))};
}

Outputs concat_from_sequence(Op& op) {
  if (op.value(0)->ragged) return join_ragged(op);
  const std::vector<Value*>& elements = op.sequence(0);
  if (elements.empty()) op.fail("joins an empty sequence");
  if (!op.has_attr("axis")) op.fail("attribute 'axis' is missing");
  const bool stack = op.int_attr("new_axis", 0) != 0;
  const int64_t rank = elements[0]->shape().rank() + (stack ? 1 : 0);
  const int64_t axis = op.axis(op.int_attr("axis", 0), rank);
  const Shape& first = elements[0]->shape();
  std::vector<Instr*> parts;
  Ints total = first.extents();
  if (stack) total.insert(total.begin() + axis, 0);
  total[static_cast<size_t>(axis)] = 0;
  for (Value* element : elements) {
    const Shape& shape = element->shape();
    Ints extents = shape.extents();
    if (stack && shape.rank() == first.rank()) extents.insert(extents.begin() + axis, 1);
    const bool fits = shape.type() == first.type() && shape.rank() == first.rank() &&
                      keeping(extents, {axis}) == keeping(total, {axis});
    if (!fits)
      op.fail("elements are {} and {}; they do not join along axis {}", to_string(first),
              to_string(shape), axis);
    total[static_cast<size_t>(axis)] += extents[static_cast<size_t>(axis)];
    op.check_extents(total);
    if (extents[static_cast<size_t>(axis)] != 0 || elements.size() == 1)
      parts.push_back(reshape(op, op.instr_of(*element), extents));
  }
  if (parts.empty()) parts.push_back(op.instr_of(*elements[0]));
  return {parts.size() == 1 ? parts[0] : op.b.concatenate(parts, axis)};
}

// Pieces of given sizes, or of one size (the last is what is left); without sizes single slices,
// whose dimension may go.
Outputs split_to_sequence(Op& op) {
  const int64_t axis = op.axis_attr(0, op.rank(0));
  const int64_t extent = op.shape(0).dim(axis);
  const bool keep = op.int_attr("keepdims", 1) != 0 || op.has(1);
  Ints sizes(op.has(1) ? 0 : static_cast<size_t>(std::min(extent, op.limits().fold_elems + 1)), 1);
  if (op.has(1) && op.rank(1) == 0) {
    const int64_t each = op.known_int(1, "split");
    if (each < 1) op.fail("pieces of {}", each);
    for (int64_t at = 0;
         at < extent && static_cast<int64_t>(sizes.size()) <= op.limits().fold_elems; at += each)
      sizes.push_back(std::min(each, extent - at));
  } else if (op.has(1)) {
    sizes = op.known_ints(1, "split");
  }
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - total)
      op.fail("sizes [{}] do not sum to {}", fmt::join(sizes, ","), extent);
    total += size;
  }
  if (total != extent) op.fail("{} pieces; they do not sum to {}", sizes.size(), extent);
  Outputs pieces;
  Ints starts(static_cast<size_t>(op.rank(0)), 0), limits = op.shape(0).extents();
  for (int64_t size : sizes) {
    const auto a = static_cast<size_t>(axis);
    limits[a] = starts[a] + size;
    Instr* piece = op.b.slice(op.in(0), starts, limits, {});
    starts[a] = limits[a];
    pieces.emplace_back(keep ? piece
                             : reshape(op, piece, without(piece->shape().extents(), {axis})));
  }
  Output sequence = Output::sequence(std::move(pieces));
  const bool is_one_by_one =
      std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; });
  if (is_one_by_one) sequence.pieces = Value::Pieces{op.value(0), axis};
  return {std::move(sequence)};
}

Outputs optional(Op& op) {
  op.ignore({"type"});
  if (op.inputs() == 0) return {Output::nothing()};
  return {op.value(0)};
}

Outputs optional_has_element(Op& op) {
  Literal has(Shape::scalar(Type::pred));
  has.set_s64(0, op.has(0) && op.value(0)->kind != Value::Kind::nothing ? 1 : 0);
  return {has};
}

Outputs optional_get_element(Op& op) {
  if (op.value(0)->kind == Value::Kind::nothing) op.fail("the optional has no value");
  return {op.value(0)};
}

constexpr OpEntry kOps[] = {
    {"ConcatFromSequence", 1, 1, concat_from_sequence, true, Text::passes},
    {"Optional", 0, 1, optional, true, Text::passes},
    {"OptionalGetElement", 1, 1, optional_get_element, true, Text::passes},
    {"OptionalHasElement", 0, 1, optional_has_element, true, Text::passes},
    {"SequenceAt", 2, 2, sequence_at, true, Text::passes},
    {"SequenceConstruct", 1, -1, sequence_construct, true, Text::passes},
    {"SequenceEmpty", 0, 0, sequence_empty},
    {"SequenceErase", 1, 2, sequence_erase, true, Text::passes},
    {"SequenceInsert", 2, 3, sequence_insert, true, Text::passes},
    {"SequenceLength", 1, 1, sequence_length, true, Text::passes},
    {"SplitToSequence", 1, 2, split_to_sequence, true, Text::passes},
};

}  // namespace

std::span<const OpEntry> sequence_ops() { return kOps; }

}  // namespace heddle::import
