// Semantics of the arithmetic operators, on single values and on rows of lanes: constant folding
// and the interpreter both use this. A value is represented by 64 bits: integers sign- or
// zero-extended from their type, floats as the bits of their own format, pred as 0 or 1 (the form
// of Expr::imm).
#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace heddle::kernel {

// Types that arithmetic is done in, and types that are only loaded, stored and converted.
bool is_arithmetic_type(Type type);
bool is_storage_type(Type type);

// Whether `op` is defined for operands of this type. For select: the two choices. Leaves, convert
// and bitcast: false; see can_convert.
bool op_takes(Op op, Type type);
bool can_convert(Type from, Type to);
// The type of the result where it does not follow from Expr::type alone: pred for comparisons and
// is_finite, else that of the operands.
Type op_result(Op op, Type operand);

// The canonical 64 bits of the low bits of a word.
uint64_t canonical_bits(Type type, uint64_t bits);

// d[i] = op(a[i * a_step], b[i * b_step], c[i * c_step]) for i < n; steps are 0 or 1. Operands
// that the op lacks are not read; select's condition is a.
struct LaneArgs {
  uint64_t* d;
  const uint64_t *a, *b, *c;
  int a_step, b_step, c_step, n;
};
using LaneFunction = void (*)(const LaneArgs& args);
// Precondition: op_takes(op, type); not for lane and shuffle_xor. For select any type does.
LaneFunction lane_function(Op op, Type type);

// Op::convert of one value. Precondition: can_convert(from, to).
uint64_t convert_bits(Type from, Type to, uint64_t bits);

// One value. Precondition as for lane_function.
uint64_t evaluate(Op op, Type type, uint64_t a, uint64_t b = 0, uint64_t c = 0);

}  // namespace heddle::kernel
