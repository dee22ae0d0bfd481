// What quantisation operators of ONNX and of com.microsoft share.
#pragma once

#include "import/onnx_emit.h"

namespace heddle::import {

// The scale that is an input, in that type. Fails where it is known and not all of it is a positive
// number; `any_sign`: a
// finite one (of a block, which may be all zeros).
Instr* scale_input(Op& op, size_t input, Type type, bool any_sign = false);
// A scale or zero point for every element of a value of these extents: it is one number, one a
// slice of `axis`, or (`block` > 0) one a block of so many along it.
Instr* spread(Op& op, Instr* x, const Ints& extents, int64_t axis, int64_t block);
// round(x) + zero point within the type's range; `x` is divided by its scale already.
Instr* to_integer(Op& op, Instr* x, Instr* zero_point, Type to);
// An integer input less its zero point, as s32. `along`: the dimension that a list of zero points
// belongs to.
Instr* centred(Op& op, size_t input, size_t zero_point, int64_t along);
// The dimension of A's rows, and of B's columns; of a vector its only one.
int64_t row_dim(const Op& op, size_t input);
int64_t column_dim(const Op& op, size_t input);
// DequantizeLinear of com.microsoft's operators: inputs `x`, `x` + 1 (scale) and `x` + 2 (zero
// point, may be missing), in f32, by row or column as `along` says.
Instr* dequantised(Op& op, size_t x, int64_t along);
// u8 [..., bytes] as [..., bytes * (8 / bits)] of numbers of `bits` bits, the lowest first.
Instr* unpacked_bits(Op& op, Instr* x, int64_t bits);
// The same, the first `extent` of them, as f32.
Instr* unpacked_numbers(Op& op, Instr* x, int64_t bits, int64_t extent);

}  // namespace heddle::import
