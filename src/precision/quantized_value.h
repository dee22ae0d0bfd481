// Values that are quantised: scale * (q - zero) of bytes q, as ONNX's DequantizeLinear writes them:
// one scale, or one a slice of a dimension; zero points likewise.
#pragma once

#include <optional>
#include <vector>

#include "hlo/builder.h"

namespace heddle::precision {

using hlo::Instr;
using hlo::Ints;

// A number for all elements, or one for each slice of a dimension.
struct PerSlice {
  Instr* value = nullptr;  // one element, of any rank; or rank 1 along `dim`. Null: left out
  int64_t dim = -1;        // -1: one element
};

struct QuantizedValue {
  Instr* bytes = nullptr;        // s8 or u8
  std::vector<Instr*> movement;  // what bytes go through to be the value's, the first one first
  // Dimensions are those of the value. The scale is f32, none: 1. The zero point is s32: what is
  // known of it and the same for all is in `known_zero`, to which the rest is added.
  PerSlice scale, zero;
  int64_t known_zero = 0;
};

// What `x` (f32, or s32 without a scale) is made of, if it is such a value. Builds nothing.
std::optional<QuantizedValue> match_quantized(Instr* x);

// The bytes with the extents of the value, moved as it was.
Instr* moved_bytes(const QuantizedValue& value, hlo::Builder& b);

// What a value repeats, if that is one number or one a slice. Builds nothing.
std::optional<PerSlice> per_slice(Instr* x);
// `slices` in every element of an array of these extents.
Instr* spread(const PerSlice& slices, const Ints& extents, hlo::Builder& b);
// One opcode of both, slice by slice; none where they lie along two dimensions.
std::optional<PerSlice> combined(hlo::Opcode opcode, const PerSlice& x, const PerSlice& y,
                                 hlo::Builder& b);
// The one number that all slices have; none where they differ or a run makes them.
std::optional<double> number_of(const PerSlice& slices);

}  // namespace heddle::precision
