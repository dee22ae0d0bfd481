#include "tensor/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace heddle::tensor {

Shape::Shape(Type type, std::vector<Dim> dims) : type_(type), dims_(std::move(dims)) {
  HEDDLE_CHECK(is_array_type(type), "{} is not an element type", type_name(type));
}

Shape Shape::array(Type type, const std::vector<int64_t>& dims) {
  return Shape(type, std::vector<Dim>(dims.begin(), dims.end()));
}

Shape Shape::make_tuple(std::vector<Shape> elements) {
  Shape shape;
  shape.elements_ = std::move(elements);
  return shape;
}

Shape Shape::make_token() {
  Shape shape;
  shape.type_ = Type::token;
  return shape;
}

Shape Shape::make_opaque() {
  Shape shape;
  shape.type_ = Type::opaque;
  return shape;
}

int64_t Shape::true_rank() const {
  return std::count_if(dims_.begin(), dims_.end(),
                       [](const Dim& d) { return d.size > 1 || d.size == Dim::kUnbounded; });
}

std::vector<int64_t> Shape::extents() const {
  std::vector<int64_t> result;
  result.reserve(dims_.size());
  for (const Dim& d : dims_) result.push_back(d.size);
  return result;
}

bool Shape::is_static() const {
  return std::none_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.dynamic; }) &&
         std::all_of(elements_.begin(), elements_.end(),
                     [](const Shape& s) { return s.is_static(); });
}

int64_t Shape::elems() const {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t product = 1;
  bool overflow = false;
  for (const Dim& d : dims_) {
    if (d.size == 0) return 0;
    overflow |= d.size < 0 || __builtin_mul_overflow(product, d.size, &product);
  }
  return overflow ? kMax : product;
}

int64_t Shape::bytes() const {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t sum = 0;
  if (is_array() && __builtin_mul_overflow(elems(), type_bytes(type_), &sum)) return kMax;
  for (const Shape& element : elements_) {
    if (__builtin_add_overflow(sum, element.bytes(), &sum)) return kMax;
  }
  return sum;
}

Layout Shape::layout_or_default() const { return layout_ ? *layout_ : Layout::row_major(rank()); }

Shape Shape::without_layout() const {
  // In place: a copy at each level of a tuple would make deep ones quadratic.
  const auto drop = [](const auto& self, Shape& shape) -> void {
    shape.layout_.reset();
    for (Shape& element : shape.elements_) self(self, element);
  };
  Shape result = *this;
  drop(drop, result);
  return result;
}

bool Shape::compatible(const Shape& other) const {
  return type_ == other.type_ &&
         std::equal(dims_.begin(), dims_.end(), other.dims_.begin(), other.dims_.end(),
                    [](const Dim& a, const Dim& b) { return a.size == b.size; }) &&
         std::equal(elements_.begin(), elements_.end(), other.elements_.begin(),
                    other.elements_.end(),
                    [](const Shape& a, const Shape& b) { return a.compatible(b); });
}

bool Shape::same_extents(const Shape& other) const {
  return is_array() == other.is_array() && (is_array() || type_ == other.type_) &&
         std::equal(dims_.begin(), dims_.end(), other.dims_.begin(), other.dims_.end(),
                    [](const Dim& a, const Dim& b) { return a.size == b.size; }) &&
         std::equal(elements_.begin(), elements_.end(), other.elements_.begin(),
                    other.elements_.end(),
                    [](const Shape& a, const Shape& b) { return a.same_extents(b); });
}

std::string to_string(const Shape& shape, bool layouts) {
  std::string text;
  if (shape.is_tuple()) {
    text = "(";
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      if (i > 0) text += ", ";
      text += to_string(shape.elements()[i], layouts);
    }
    return text + ")";
  }
  text = fmt::format("{}[", type_name(shape.type()));
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const Dim& d = shape.dims()[i];
    if (i > 0) text += ',';
    if (d.size == Dim::kUnbounded) {
      text += '?';
    } else {
      text += fmt::format("{}{}", d.dynamic ? "<=" : "", d.size);
    }
  }
  text += ']';
  if (layouts && shape.layout()) {
    std::string layout = to_string(*shape.layout());
    if (layout != "{}") text += layout;  // omits a scalar's plain layout
  }
  return text;
}

std::optional<int64_t> checked_product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  bool zero = false;
  for (int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    // A zero must not hide an overflow of the other extents: strides are products of them too.
    if (extent == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(product, extent, &product)) {
      return std::nullopt;
    }
  }
  return zero ? 0 : product;
}

}  // namespace heddle::tensor
