#include "import/hlo_proto_literal.h"

#include <cstring>

#include "import/hlo_proto_shape.h"
#include "import/hlo_proto_types.h"
#include "tensor/pack.h"

namespace heddle::import {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

void wrong_count(const Shape& shape, size_t got, int64_t wanted) {
  fail("a literal of {} has {} bytes of values, wanted {}", tensor::to_string(shape, false), got,
       wanted);
}

// A view of the elements in the file, or a copy if they are in several pieces.
Literal from_bytes(HloReader& message, const Shape& shape, const ProtoType& row,
                   const std::shared_ptr<const void>& owner) {
  const auto wanted = static_cast<size_t>(shape.elems() * tensor::type_bytes(row.type));
  std::string gathered;
  const std::string_view bytes = message.elements(row.literal_field, gathered);
  if (bytes.size() != wanted) wrong_count(shape, bytes.size(), static_cast<int64_t>(wanted));
  const int bits = tensor::type_bits(row.type);
  if (bits >= 8 && gathered.empty() && wanted > 0) return Literal::view(shape, bytes.data(), owner);
  Literal out = value_or_throw(Literal::make(shape));
  if (wanted == 0) return out;
  std::memcpy(out.mutable_data(), bytes.data(), wanted);
  // Types narrower than a byte: clears the unused high bits.
  for (int64_t i = 0; bits < 8 && i < out.elems(); ++i)
    out.set_bits(i, static_cast<unsigned char>(bytes[static_cast<size_t>(i)]) &
                        ((1U << static_cast<unsigned>(bits)) - 1));
  return out;
}

Literal from_numbers(HloReader& message, const Shape& shape, const ProtoType& row) {
  std::vector<int64_t> numbers;
  message.ints(row.literal_field, numbers);
  if (static_cast<int64_t>(numbers.size()) != shape.elems())
    fail("a literal of {} has {} values", tensor::to_string(shape, false), numbers.size());
  Literal out = value_or_throw(Literal::make(shape));
  for (size_t i = 0; i < numbers.size(); ++i)
    out.set_s64(static_cast<int64_t>(i), row.type == Type::pred ? numbers[i] != 0 : numbers[i]);
  return out;
}

}  // namespace

Literal read_literal(HloReader& message, const std::shared_ptr<const void>& owner) {
  std::optional<Shape> declared = shape_field(message, 1, nullptr);
  if (!declared) fail("a literal without a shape");
  if (message.has(14) || message.has(34)) fail("a literal that is sparse or of dynamic sizes");
  if (declared->is_tuple()) {
    std::vector<Literal> elements;
    message.each(10, 0, [&](HloReader& m, size_t) { elements.push_back(read_literal(m, owner)); });
    if (elements.size() != declared->elements().size())
      fail("a literal of {} has {} elements", tensor::to_string(*declared, false), elements.size());
    Literal out = Literal::tuple(std::move(elements));
    if (!out.shape().compatible(*declared))
      fail("a literal of {} holds {}", tensor::to_string(*declared, false),
           tensor::to_string(out.shape(), false));
    return out;
  }
  const ProtoType* row = proto_type(declared->type());
  if (!declared->is_array() || row == nullptr || !declared->is_static())
    fail("a literal of {}", tensor::to_string(*declared, false));
  const tensor::Layout layout = declared->layout_or_default();
  const bool as_it_is = layout.is_row_major() || declared->rank() < 2;
  if (!as_it_is && !layout.tiles.empty()) fail("a literal with a tiled layout");
  const Shape shape = declared->without_layout();
  const Shape lying = as_it_is ? shape : Shape::array(shape.type(), {shape.elems()});
  const Literal memory = row->coding == ProtoCoding::varint
                             ? from_numbers(message, lying, *row)
                             : from_bytes(message, lying, *row, owner);
  if (as_it_is) return memory;
  tensor::Layout order;
  order.minor_to_major = layout.minor_to_major;
  return value_or_throw(tensor::unpack(memory, shape, order));
}

}  // namespace heddle::import
