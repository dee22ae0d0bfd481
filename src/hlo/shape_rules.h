// Helpers shared by the rules of shape inference. Private to shape_*.cc and verify.cc.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::hlo {

using tensor::Dim;

// The arguments of infer_shape.
struct ShapeQuery {
  Opcode opcode;
  std::span<const Shape* const> operands;
  const Attrs& attrs;
  std::span<Computation* const> called;
  const Shape* declared;  // or nullptr

  const Shape& operand(size_t i) const { return *operands[i]; }
  size_t count() const { return operands.size(); }
  template <typename T>
  const T& attrs_as() const {
    return std::get<T>(attrs);
  }
};
using ShapeRule = Result<Shape> (*)(const ShapeQuery&);

// "<opcode>: message".
template <typename... Args>
tl::unexpected<Error> shape_error(const ShapeQuery& q, fmt::format_string<Args...> format,
                                  Args&&... args) {
  return tl::unexpected<Error>(
      Error{ErrorKind::shape, fmt::format("{}: {}", opcode_text(q.opcode),
                                          fmt::format(format, std::forward<Args>(args)...))});
}

// Text for messages: a shape without layouts, a dimension, a list.
std::string text(const Shape& shape);
std::string text(const Dim& dim);
std::string text(const Ints& list);  // "{0, 1}"

// Sets of element types.
enum TypeSet : uint8_t {
  kPred = 1,
  kSigned = 2,
  kUnsigned = 4,
  kFloat = 8,
  kComplex = 16,
  kInteger = kSigned | kUnsigned,
  kNumber = kInteger | kFloat | kComplex,
  kAnyType = kNumber | kPred,
};
bool in_set(Type type, int set);
std::string set_text(int set);  // "a signed integer or float type"

Status want_array(const ShapeQuery& q, size_t operand);
Status want_arrays(const ShapeQuery& q);  // all operands
Status want_type(const ShapeQuery& q, size_t operand, int set);
Status want_same_type(const ShapeQuery& q, size_t operand, size_t other);
Status want_scalar(const ShapeQuery& q, size_t operand);
Status want_rank(const ShapeQuery& q, size_t operand, int64_t rank);
// The declared shape, or the error that it is missing.
Status want_declared(const ShapeQuery& q);
Status want_declared_array(const ShapeQuery& q);
// Dimension numbers: each in [0, rank), none twice; `sorted`: ascending.
Status want_dims(const ShapeQuery& q, const Ints& dims, int64_t rank, std::string_view name,
                 bool sorted = false);
Status want_dim(const ShapeQuery& q, int64_t dim, int64_t rank, std::string_view name);

// Extents that may be equal at run time: equal sizes (bounds), or one of them unbounded.
bool agree(const Dim& a, const Dim& b);
bool same_dims(const Shape& a, const Shape& b);  // agree() in each; types aside
// Combines the knowledge about one dimension from two shapes; precondition agree(). Dynamic if
// either is; the size of the bounded one; the first symbol.
Dim merged(const Dim& a, const Dim& b);
// `dim` with another extent: stays dynamic; keeps its symbol only if the extent is unchanged.
Dim resized(const Dim& dim, int64_t size);
bool unbounded(const Dim& dim);
// Same type, and sizes as inferred; dynamic flags, symbols and layouts are ignored. Recursive.
bool declared_fits(const Shape& declared, const Shape& inferred);
// Product of the extents; nothing if one is unbounded.
std::optional<int64_t> known_elems(const Shape& shape);
// Error if the elements or the bytes of an array in it overflow int64, or its rank is too high.
Status want_countable(const ShapeQuery& q, const Shape& shape);

// a + b, a * b as extents; an error on overflow.
Result<int64_t> add_extents(const ShapeQuery& q, int64_t a, int64_t b);
Result<int64_t> multiply_extents(const ShapeQuery& q, int64_t a, int64_t b);
// Output extent of a window dimension over `extent` elements.
Result<int64_t> window_extent(const ShapeQuery& q, int64_t extent, const WindowDim& window,
                              size_t axis);

// Checks counts against the opcode's row (invariant 4).
Status check_operand_count(const ShapeQuery& q);
Status check_called_count(const ShapeQuery& q);
// The called computations: count, parameters and result as the opcode requires (invariant 8).
Status check_called(const ShapeQuery& q);

// One per family, by file.
Result<Shape> unary_shape(const ShapeQuery& q);
Result<Shape> binary_shape(const ShapeQuery& q);
Result<Shape> compare_shape(const ShapeQuery& q);
Result<Shape> select_shape(const ShapeQuery& q);
Result<Shape> clamp_shape(const ShapeQuery& q);
Result<Shape> map_shape(const ShapeQuery& q);
Result<Shape> convert_shape(const ShapeQuery& q);
Result<Shape> stochastic_convert_shape(const ShapeQuery& q);
Result<Shape> bitcast_convert_shape(const ShapeQuery& q);

Result<Shape> bitcast_shape(const ShapeQuery& q);
Result<Shape> broadcast_shape(const ShapeQuery& q);
Result<Shape> concatenate_shape(const ShapeQuery& q);
Result<Shape> reshape_shape(const ShapeQuery& q);
Result<Shape> dynamic_reshape_shape(const ShapeQuery& q);
Result<Shape> transpose_shape(const ShapeQuery& q);
Result<Shape> reverse_shape(const ShapeQuery& q);
Result<Shape> iota_shape(const ShapeQuery& q);
Result<Shape> get_dimension_size_shape(const ShapeQuery& q);
Result<Shape> set_dimension_size_shape(const ShapeQuery& q);

Result<Shape> slice_shape(const ShapeQuery& q);
Result<Shape> pad_shape(const ShapeQuery& q);
Result<Shape> dynamic_slice_shape(const ShapeQuery& q);
Result<Shape> dynamic_update_slice_shape(const ShapeQuery& q);
Result<Shape> gather_shape(const ShapeQuery& q);
Result<Shape> scatter_shape(const ShapeQuery& q);

Result<Shape> reduce_shape(const ShapeQuery& q);
Result<Shape> reduce_window_shape(const ShapeQuery& q);
Result<Shape> select_and_scatter_shape(const ShapeQuery& q);
Result<Shape> scan_shape(const ShapeQuery& q);
Result<Shape> sort_shape(const ShapeQuery& q);
Result<Shape> topk_shape(const ShapeQuery& q);

Result<Shape> dot_shape(const ShapeQuery& q);
Result<Shape> scaled_dot_shape(const ShapeQuery& q);
Result<Shape> ragged_dot_shape(const ShapeQuery& q);
Result<Shape> convolution_shape(const ShapeQuery& q);
Result<Shape> batch_norm_shape(const ShapeQuery& q);
Result<Shape> cholesky_shape(const ShapeQuery& q);
Result<Shape> triangular_solve_shape(const ShapeQuery& q);
Result<Shape> fft_shape(const ShapeQuery& q);

Result<Shape> called_result_shape(const ShapeQuery& q);  // call, conditional, while, fusion
Result<Shape> constant_shape(const ShapeQuery& q);
Result<Shape> parameter_shape(const ShapeQuery& q);
Result<Shape> tuple_shape(const ShapeQuery& q);
Result<Shape> get_tuple_element_shape(const ShapeQuery& q);
Result<Shape> async_shape(const ShapeQuery& q);
Result<Shape> same_as_operand_shape(const ShapeQuery& q);  // copy, opt-barrier, domain, …
Result<Shape> collective_shape(const ShapeQuery& q);
Result<Shape> device_id_shape(const ShapeQuery& q);
Result<Shape> send_recv_shape(const ShapeQuery& q);
Result<Shape> copy_async_shape(const ShapeQuery& q);
Result<Shape> rng_shape(const ShapeQuery& q);
Result<Shape> rng_bits_shape(const ShapeQuery& q);
Result<Shape> token_shape(const ShapeQuery& q);
Result<Shape> declared_shape(const ShapeQuery& q);  // custom-call, …: anything

}  // namespace heddle::hlo
