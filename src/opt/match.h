// Small predicates on instructions for use in rules. They change nothing.
#pragma once

#include <optional>
#include <vector>

#include "hlo/index_map.h"

namespace heddle::opt {

using hlo::Computation;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using hlo::reshape_pieces;
using hlo::ReshapePiece;
using hlo::Shape;
using tensor::Literal;
using tensor::Type;

inline bool is_float(const Instr* x) { return tensor::is_float(x->shape().type()); }
inline bool is_integer(const Instr* x) { return tensor::is_integer(x->shape().type()); }
inline bool is_pred(const Instr* x) { return x->shape().type() == Type::pred; }
inline bool is_elementwise(const Instr* x) {
  return hlo::has_trait(x->opcode(), hlo::Trait::elementwise);
}
// An array whose extents are all static: required by rules that compute with extents.
inline bool is_static_array(const Instr* x) {
  return x->shape().is_array() && x->shape().is_static();
}
bool are_static_arrays(const Instr* x);  // itself and its operands

// The value of a constant array; null for others.
const Literal* constant_of(const Instr* x);
// If all elements are one known constant (a constant of one element, or a broadcast of one): a
// literal of one element; else null.
const Literal* splat_of(const Instr* x);
// A splat of exactly this number. For floats 0 and -0 differ, see is_negative_zero.
bool is_splat(const Instr* x, double number);
bool is_negative_zero(const Instr* x);  // floats
// Integers and pred: all bits set; no bit set.
bool is_all_ones(const Instr* x);
bool is_zero_bits(const Instr* x);
// A constant or a broadcast of one: last in the canonical order of operands.
bool is_constant_like(const Instr* x);

// Computed from constants alone, by operators without effect; searches to a bounded depth.
bool is_constant_expression(const Instr* x);

// A float that is never -0, so that adding +0 does not change it.
bool is_never_negative_zero(const Instr* x);

// Every value of `from` is a value of `to`, and converts to it and back unchanged.
bool converts_exactly(Type from, Type to);

// 0, 1, …, n-1.
Ints counting(int64_t n);
bool is_counting(const Ints& list);
bool is_ascending(const Ints& list);
bool contains(const Ints& list, int64_t value);
// result[i] = list[order[i]].
Ints permuted(const Ints& list, const Ints& order);
Ints inverted(const Ints& permutation);

// Extents other than 1, in order.
Ints without_ones(const Ints& extents);

}  // namespace heddle::opt
