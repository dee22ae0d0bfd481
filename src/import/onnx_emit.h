// Helpers for handlers: numpy broadcasting, reshapes, scalars, means.
#pragma once

#include <type_traits>
#include <utility>

#include "import/onnx_op.h"

namespace heddle::import {

// f16 and bf16 are computed in f32 inside function-like operators; others in their own type.
Type compute_type(Type type);

// A reshape that merges with a preceding reshape, returns its operand if nothing changes, and makes
// a view of a constant.
Instr* reshape(Op& op, Instr* x, const Ints& extents);
// Numpy rule. A stretched dimension of 1 is dropped before the broadcast, so that the result of a
// reduction with keepdims is broadcast from its reduced form.
Instr* broadcast_to(Op& op, Instr* x, const Ints& extents);
// x[C] along dimension `dim` of a value of these extents (a bias, a scale).
Instr* broadcast_along(Op& op, Instr* x, const Ints& extents, int64_t dim);
// Broadcasts a scalar to all elements.
Instr* splat(Op& op, Instr* scalar, const Ints& extents);
Ints common_extents(Op& op, const Ints& a, const Ints& b);
Instr* binary(Op& op, Opcode opcode, Instr* x, Instr* y);         // numpy broadcasting
Instr* compare(Op& op, Direction direction, Instr* x, Instr* y);  // numpy broadcasting
// With a number for all elements. (Templates, so that a literal 0 is not a null pointer.)
Instr* binary_number(Op& op, Opcode opcode, Instr* x, double y);
Instr* compare_number(Op& op, Direction direction, Instr* x, double y);
template <typename Number>
  requires std::is_arithmetic_v<Number>
Instr* binary(Op& op, Opcode opcode, Instr* x, Number y) {
  return binary_number(op, opcode, x, static_cast<double>(y));
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
Instr* compare(Op& op, Direction direction, Instr* x, Number y) {
  return compare_number(op, direction, x, static_cast<double>(y));
}
Instr* select(Op& op, Instr* predicate, Instr* on_true, Instr* on_false);  // numpy broadcasting
Instr* iota(Op& op, Type type, const Ints& extents, int64_t dim);
// Of a list that is put together from others: the one that has element k, and its number in it.
std::pair<Instr*, int64_t> part_of(Instr* list, int64_t k);
// numpy matmul (onnx_matmul.cc).
Instr* matrix_product(Op& op, Instr* a, Instr* b);
// The node's convolution of x [N,C,...] with weights [M,C/group,...], by its window attributes
// (onnx_conv.cc).
Instr* convolve(Op& op, Instr* x, Instr* weights);
// 0.5 x (1 + inner), where inner is an error function of x, or the approximation tanh(sqrt(2 / pi)
// (x + 0.044715 x^3)) (tanh_of_gelu).
Instr* gelu_of(Op& op, Instr* x, Instr* inner);
Instr* tanh_of_gelu(Op& op, Instr* x);
// Adds the extent to negative positions, which count from the end.
Instr* from_the_beginning(Op& op, Instr* positions, int64_t extent);
// The extent of a dimension, a scalar: a number, or what is there of one that is bounded.
Instr* extent_of(Op& op, Instr* x, int64_t dim, Type type);
// Sum over the dimensions divided by their number of elements; the dimensions are removed.
Instr* mean(Op& op, Instr* x, const Ints& dims);
// Broadcasts a reduced value back over the removed dimensions.
Instr* broadcast_back(Op& op, Instr* reduced, const Ints& extents, const Ints& dims);
// Extents with `dims` removed, or made 1.
Ints without(const Ints& extents, const Ints& dims);
Ints keeping(const Ints& extents, const Ints& dims);
// Running sums, products, ... along an axis (onnx_order.cc).
Instr* running(Op& op, Opcode opcode, Instr* x, int64_t axis, bool reverse);
// from, from + 1, ..., to - 1.
Ints range(int64_t from, int64_t to);
int64_t product(const Ints& extents, int64_t from = 0, int64_t to = -1);
Literal ints_literal(const Ints& values);  // s64[n]
// The constant value, or null if it is not a constant.
const Literal* constant_of(const Instr* x);

}  // namespace heddle::import
