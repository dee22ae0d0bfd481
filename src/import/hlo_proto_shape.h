// Shapes of HLO protos: ShapeProto as a plain struct, its fields, and conversion to and from Shape.
#pragma once

#include <optional>
#include <vector>

#include "import/failure.h"
#include "tensor/shape.h"

namespace heddle::import {

struct LayoutMessage {
  std::vector<int64_t> minor_to_major;
  std::vector<std::vector<int64_t>> tiles;
  int64_t element_size_bits = 0, memory_space = 0;
  // Kept as text in Layout::rest: L(n), M(n).
  int64_t tail_alignment = 0, metadata_bytes = 0;
};

struct ShapeMessage {
  int64_t type = 0;  // PrimitiveType
  std::vector<int64_t> dims, dynamic;
  std::vector<ShapeMessage> elements;
  std::optional<LayoutMessage> layout;
};

void add_layouts(ShapeMessage& message);  // adds the default layout if there is none

// Throws Failure: unknown types, invalid sizes, layouts that do not fit the array.
tensor::Shape to_shape(const ShapeMessage& message);
// `lost`: gets the parts of layouts without a field.
ShapeMessage from_shape(const tensor::Shape& shape, std::vector<std::string>* lost);

template <typename Io>
void layout_fields(Io& io, LayoutMessage& a) {
  io.ints(1, a.minor_to_major);
  io.each(6, a.tiles.size(), [&](Io& m, size_t i) {
    if (a.tiles.size() <= i) a.tiles.resize(i + 1);
    m.ints(1, a.tiles[i]);
  });
  io.integer(7, a.element_size_bits);
  io.integer(8, a.memory_space);
  io.integer(15, a.metadata_bytes);
  io.integer(16, a.tail_alignment);
  if constexpr (Io::kReads)
    for (const int sparse : {9, 10, 11, 12, 17})
      if (io.has(sparse)) fail("a layout that is sparse or split between memories");
}

template <typename Io>
void shape_fields(Io& io, ShapeMessage& a) {
  io.integer(2, a.type);
  io.ints(3, a.dims);
  io.each(4, a.elements.size(), [&](Io& m, size_t i) {
    if (a.elements.size() <= i) a.elements.resize(i + 1);
    shape_fields(m, a.elements[i]);
  });
  const bool has_layout = io.message(5, a.layout.has_value(), [&](Io& m) {
    if (!a.layout) a.layout.emplace();
    layout_fields(m, *a.layout);
  });
  if (!has_layout) a.layout.reset();
  io.ints(6, a.dynamic);
}

// A shape in a field of a message; nothing if the field is absent.
template <typename Io>
std::optional<tensor::Shape> shape_field(Io& io, int field, const tensor::Shape* shape) {
  ShapeMessage message;
  std::vector<std::string> lost;
  if (shape) message = from_shape(*shape, &lost);
  for (const std::string& what : lost) io.lose(what);
  const bool there = io.message(field, shape != nullptr, [&](Io& m) { shape_fields(m, message); });
  if (!there || !Io::kReads) return std::nullopt;
  return to_shape(message);
}

}  // namespace heddle::import
