#include "import/hlo_proto_shape.h"

#include <algorithm>
#include <array>

#include "hlo/shape_limits.h"
#include "import/hlo_proto_text.h"
#include "import/hlo_proto_types.h"

namespace heddle::import {
namespace {

using tensor::Dim;
using tensor::Layout;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kBuffer = 34;  // PrimitiveType that only says that the value is a buffer
constexpr int64_t kUnbounded = INT64_MIN;  // size of a dimension without bound
constexpr int64_t kLargestTile = int64_t{1} << 46;

// "L(8)M(16)"
std::string rest_of(const LayoutMessage& message) {
  std::string text;
  // Protos always have an alignment, by default of one element.
  if (message.tail_alignment > 1) text += fmt::format("L({})", message.tail_alignment);
  if (message.metadata_bytes > 0) text += fmt::format("M({})", message.metadata_bytes);
  return text;
}

void read_rest(std::string_view text, LayoutMessage& to, std::vector<std::string>* lost) {
  while (!text.empty()) {
    const size_t open = text.find('('), close = text.find(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) break;
    const std::string_view part = text.substr(0, open);
    const std::string_view value = text.substr(open + 1, close - open - 1);
    if (part == "L") {
      to.tail_alignment = number_in(value);
    } else if (part == "M") {
      to.metadata_bytes = number_in(value);
    } else {
      lost->push_back(fmt::format("{}() of a layout", part));
    }
    text.remove_prefix(close + 1);
  }
}

Layout to_layout(const LayoutMessage& message) {
  if (message.element_size_bits < 0 || message.memory_space < 0)
    fail("a layout has a negative element size or memory space");
  Layout layout;
  layout.minor_to_major = message.minor_to_major;
  layout.element_size_bits = message.element_size_bits;
  layout.memory_space = message.memory_space;
  for (const std::vector<int64_t>& dims : message.tiles) {
    for (const int64_t size : dims)
      if (size != tensor::Tile::kCombine && (size < 1 || size > kLargestTile))
        fail("a tile's size is {}, wanted at least 1", size);
    layout.tiles.push_back({dims});
  }
  layout.rest = rest_of(message);
  return layout;
}

bool says_nothing(const Layout& layout) { return layout == Layout{}; }

}  // namespace

const ProtoType* proto_type(Type type) {
  const auto found = std::find_if(kProtoTypes.begin(), kProtoTypes.end(),
                                  [&](const ProtoType& row) { return row.type == type; });
  return found == kProtoTypes.end() ? nullptr : &*found;
}

void add_layouts(ShapeMessage& message) {
  for (ShapeMessage& element : message.elements) add_layouts(element);
  const auto is_this = [&](const ProtoType& row) { return row.number == message.type; };
  const auto found = std::find_if(kProtoTypes.begin(), kProtoTypes.end(), is_this);
  if (message.layout || found == kProtoTypes.end() || !tensor::is_array_type(found->type)) return;
  message.layout.emplace().minor_to_major =
      Layout::row_major(static_cast<int64_t>(message.dims.size())).minor_to_major;
}

Shape to_shape(const ShapeMessage& message) {
  if (message.type == kBuffer && message.elements.size() == 1) return to_shape(message.elements[0]);
  const auto found = std::find_if(kProtoTypes.begin(), kProtoTypes.end(),
                                  [&](const ProtoType& row) { return row.number == message.type; });
  if (found == kProtoTypes.end()) fail("a shape has the unknown element type {}", message.type);
  if (found->type == Type::token) return Shape::make_token();
  if (found->type == Type::opaque) return Shape::make_opaque();
  if (found->type == Type::tuple) {
    std::vector<Shape> elements;
    elements.reserve(message.elements.size());
    for (const ShapeMessage& element : message.elements) elements.push_back(to_shape(element));
    return Shape::make_tuple(std::move(elements));
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < message.dims.size(); ++i) {
    Dim dim(message.dims[i]);
    dim.dynamic = i < message.dynamic.size() && message.dynamic[i] != 0;
    if (dim.size == kUnbounded) {
      dim.size = Dim::kUnbounded;
      dim.dynamic = true;
    } else if (dim.size < 0) {
      fail("the dimension {} is negative", dim.size);
    }
    dims.push_back(std::move(dim));
  }
  Shape shape(found->type, std::move(dims));
  if (message.layout) {
    Layout layout = to_layout(*message.layout);
    if (!says_nothing(layout)) shape.set_layout(std::move(layout));  // of a scalar
  }
  if (Status checked = hlo::check_array_shape(shape); !checked) fail("{}", checked.error().message);
  return shape;
}

ShapeMessage from_shape(const Shape& shape, std::vector<std::string>* lost) {
  ShapeMessage message;
  message.type = proto_type(shape.type())->number;
  for (const Shape& element : shape.elements())
    message.elements.push_back(from_shape(element, lost));
  if (!shape.is_array()) return message;
  const bool is_static = shape.is_static();
  for (const Dim& dim : shape.dims()) {
    message.dims.push_back(dim.size == Dim::kUnbounded ? kUnbounded : dim.size);
    if (!is_static) message.dynamic.push_back(dim.dynamic);
  }
  if (!shape.layout()) return message;
  LayoutMessage& layout = message.layout.emplace();
  layout.minor_to_major = shape.layout()->minor_to_major;
  layout.element_size_bits = shape.layout()->element_size_bits;
  layout.memory_space = shape.layout()->memory_space;
  for (const tensor::Tile& tile : shape.layout()->tiles) layout.tiles.push_back(tile.dims);
  if (!shape.layout()->padded_dimensions.empty()) lost->push_back("PD() of a layout");
  read_rest(shape.layout()->rest, layout, lost);
  return message;
}

}  // namespace heddle::import
