#include "tensor/pack.h"

#include <cstring>

namespace heddle::tensor {
namespace {

// Calls visit(row-major index, position in memory) for every element of the array.
template <typename Visit>
void for_each_place(const Layout& layout, const std::vector<int64_t>& dims, int64_t elems,
                    const Visit& visit) {
  auto rank = static_cast<int64_t>(dims.size());
  // Without tiles a position is a sum of strides.
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (int64_t d : layout.minor_to_major) {
    strides[d] = stride;
    stride *= layout.padded_dimensions.empty() ? dims[d] : layout.padded_dimensions[d];
  }
  std::vector<int64_t> index(dims.size(), 0);
  int64_t at = 0;
  for (int64_t i = 0; i < elems; ++i) {
    visit(i, layout.tiles.empty() ? at : linear_index(layout, dims, index));
    for (int64_t d = rank; d-- > 0;) {
      at += strides[d];
      if (++index[d] < dims[d]) break;
      at -= strides[d] * dims[d];
      index[d] = 0;
    }
  }
}

// The shape of the packed memory of `shape` under `layout`.
Result<Shape> memory_shape(const Shape& shape, const Layout& layout) {
  if (!shape.is_array() || !shape.is_static()) {
    return user_error("{} has no layout; wanted a static array", to_string(shape));
  }
  HEDDLE_RETURN_IF_ERROR(check_layout(layout, shape.extents()));
  return Shape::array(shape.type(), {padded_elems(layout, shape.extents())});
}

}  // namespace

Result<Literal> pack(const Literal& value, const Layout& layout) {
  return pack(value, layout,
              value.shape().is_array() ? Literal(Shape::scalar(value.type())) : Literal());
}

Result<Literal> pack(const Literal& value, const Layout& layout, const Literal& padding) {
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, memory_shape(value.shape(), layout));
  if (!padding.shape().is_scalar() || padding.type() != value.type()) {
    return user_error("padding value {}, wanted a scalar {}", to_string(padding.shape()),
                      type_name(value.type()));
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal memory, Literal::make(shape));
  auto bytes = static_cast<size_t>(type_bytes(value.type()));
  auto* to = static_cast<char*>(memory.mutable_data());
  const auto* from = static_cast<const char*>(value.data());
  if (memory.elems() > value.elems()) {
    for (int64_t i = 0; i < memory.elems(); ++i) std::memcpy(to + i * bytes, padding.data(), bytes);
  }
  for_each_place(layout, value.shape().extents(), value.elems(), [&](int64_t i, int64_t place) {
    std::memcpy(to + place * bytes, from + i * bytes, bytes);
  });
  return memory;
}

Result<Literal> unpack(const Literal& memory, const Shape& shape, const Layout& layout) {
  HEDDLE_ASSIGN_OR_RETURN(Shape wanted, memory_shape(shape, layout));
  if (!memory.shape().compatible(wanted)) {
    return user_error("memory of {}: got {}, wanted {}", to_string(shape.without_layout()),
                      to_string(memory.shape()), to_string(wanted));
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal value, Literal::make(shape));
  auto bytes = static_cast<size_t>(type_bytes(value.type()));
  auto* to = static_cast<char*>(value.mutable_data());
  const auto* from = static_cast<const char*>(memory.data());
  for_each_place(layout, shape.extents(), value.elems(), [&](int64_t i, int64_t place) {
    std::memcpy(to + i * bytes, from + place * bytes, bytes);
  });
  return value;
}

}  // namespace heddle::tensor
