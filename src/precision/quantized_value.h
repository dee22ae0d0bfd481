// Quantised values: scale * (q - zero) of bytes q, as ONNX's DequantizeLinear writes them, with one
// scale or one per slice of a dimension; zero points likewise.
#pragma once

#include <optional>
#include <vector>

#include "hlo/builder.h"

namespace heddle::precision {

using hlo::Instr;
using hlo::Ints;

// One number for all elements, or one for each slice of a dimension.
struct PerSlice {
  Instr* value = nullptr;  // one element, of any rank; or rank 1 along `dim`. Null: absent
  int64_t dim = -1;        // -1: one element
};

struct QuantizedValue {
  Instr* bytes = nullptr;        // s8 or u8
  std::vector<Instr*> movement;  // data movement from the bytes to the value, in order
  // Dimensions are those of the value. The scale is f32, null: 1. The zero point is s32: the sum of
  // a known number, equal for all slices, in `known_zero`, and `zero`.
  PerSlice scale, zero;
  int64_t known_zero = 0;
};

// Decomposes `x` (f32, or s32 without a scale) if it is such a value. Adds no instructions.
std::optional<QuantizedValue> match_quantized(Instr* x);

// The bytes after the value's data movement, with the value's extents.
Instr* moved_bytes(const QuantizedValue& value, hlo::Builder& b);

// The numbers that are broadcast to form a value, if it is one number or one per slice. Adds no
// instructions.
std::optional<PerSlice> per_slice(Instr* x);
// `slices` broadcast to an array of these extents.
Instr* spread(const PerSlice& slices, const Ints& extents, hlo::Builder& b);
// Applies one opcode slice by slice; no value if they are along two different dimensions.
std::optional<PerSlice> combined(hlo::Opcode opcode, const PerSlice& x, const PerSlice& y,
                                 hlo::Builder& b);
// The number that all slices share; no value if they differ or are not constant.
std::optional<double> number_of(const PerSlice& slices);

}  // namespace heddle::precision
