// Shape: element type, dimensions (a number, or a bounded symbol), layout; or a tuple of shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/layout.h"
#include "tensor/type.h"

namespace heddle::tensor {

// One dimension. `size` is the extent, or the upper bound if the dimension is dynamic (kUnbounded:
// `?`). Symbols of the same name are equal everywhere in a module.
struct Dim {
  static constexpr int64_t kUnbounded = -1;
  int64_t size = 0;
  bool dynamic = false;
  std::string symbol;  // may be empty

  Dim() = default;
  Dim(int64_t n) : size(n) {}  // NOLINT: a number is a dimension
  bool operator==(const Dim&) const = default;
};

class Shape {
 public:
  Shape() = default;                        // the empty tuple
  Shape(Type type, std::vector<Dim> dims);  // array, default layout
  static Shape array(Type type, const std::vector<int64_t>& dims);
  static Shape scalar(Type type) { return Shape(type, {}); }
  static Shape make_tuple(std::vector<Shape> elements);
  static Shape make_token();
  static Shape make_opaque();

  Type type() const { return type_; }
  bool is_array() const { return is_array_type(type_); }
  bool is_tuple() const { return type_ == Type::tuple; }
  bool is_scalar() const { return is_array() && dims_.empty(); }

  // Arrays.
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t true_rank() const;  // dimensions greater than 1
  const std::vector<Dim>& dims() const { return dims_; }
  // The extent; a negative number counts from the end.
  int64_t dim(int64_t i) const { return dims_[i < 0 ? i + rank() : i].size; }
  std::vector<int64_t> extents() const;  // sizes (bounds if dynamic)
  bool is_static() const;                // recursively
  // Product of the extents, and its dense bytes (tuples: the sum). INT64_MAX on overflow or if an
  // extent is unbounded: use checked_product for shapes from outside.
  int64_t elems() const;
  int64_t bytes() const;
  void set_type(Type type) { type_ = type; }
  void set_dim(int64_t i, Dim d) { dims_[i] = std::move(d); }
  // Absent: row-major, and not printed.
  const std::optional<Layout>& layout() const { return layout_; }
  Layout layout_or_default() const;
  void set_layout(std::optional<Layout> layout) { layout_ = std::move(layout); }
  Shape without_layout() const;  // recursively

  // Tuples.
  const std::vector<Shape>& elements() const { return elements_; }
  std::vector<Shape>& mutable_elements() { return elements_; }

  bool operator==(const Shape&) const = default;  // layout included
  // Same type and extents, recursively; layouts are ignored. Default and explicit row-major agree.
  bool compatible(const Shape& other) const;
  bool same_extents(const Shape& other) const;  // element types may differ

 private:
  Type type_ = Type::tuple;
  std::vector<Dim> dims_;
  std::optional<Layout> layout_;
  std::vector<Shape> elements_;
};

// HLO text: "f32[2,<=3,?]{1,0}", "(f32[], s32[2])", "token[]". Layouts only if `layouts`.
std::string to_string(const Shape& shape, bool layouts = true);
// Product of extents; nothing if it overflows int64 or an extent is negative.
std::optional<int64_t> checked_product(const std::vector<int64_t>& extents);

}  // namespace heddle::tensor
