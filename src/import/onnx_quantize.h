// Shared by the quantisation operators of ONNX and of com.microsoft.
#pragma once

#include "import/onnx_emit.h"

namespace heddle::import {

// The scale input, in that type. Fails if it is known and has an element that is not positive;
// `any_sign`: that is not finite (for blocks, which may be all zeros).
Instr* scale_input(Op& op, size_t input, Type type, bool any_sign = false);
// A scale or zero point broadcast to all elements of a value of these extents: one number, one per
// slice of `axis`, or (`block` > 0) one per block of that size along it.
Instr* spread(Op& op, Instr* x, const Ints& extents, int64_t axis, int64_t block);
// round(x) + zero point within the type's range; `x` has already been divided by its scale.
Instr* to_integer(Op& op, Instr* x, Instr* zero_point, Type to);
// An integer input minus its zero point, as s32. `along`: the dimension of a list of zero points.
Instr* centred(Op& op, size_t input, size_t zero_point, int64_t along);
// The dimension of A's rows, and of B's columns; for a vector its only dimension.
int64_t row_dim(const Op& op, size_t input);
int64_t column_dim(const Op& op, size_t input);
// DequantizeLinear of com.microsoft's operators: inputs `x`, `x` + 1 (scale) and `x` + 2 (zero
// point, may be missing), in f32, by row or column as `along` says.
Instr* dequantised(Op& op, size_t x, int64_t along);
// u8 [..., bytes] as [..., bytes * (8 / bits)] of numbers of `bits` bits, the lowest first.
Instr* unpacked_bits(Op& op, Instr* x, int64_t bits);
// The same, limited to the first `extent` numbers, as f32.
Instr* unpacked_numbers(Op& op, Instr* x, int64_t bits, int64_t extent);

}  // namespace heddle::import
