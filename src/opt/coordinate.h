// Private to opt: recognises integer arrays whose elements are a coordinate of the array.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace heddle::opt {

// Every element of an integer array is step * (its coordinate along `dimension`) + offset; with
// step 0 the dimension is -1 and all elements are `offset`.
struct Coordinate {
  int64_t dimension = -1;
  int64_t step = 0;
  int64_t offset = 0;
};

// Follows movement, conversions to at least 32 bits, arithmetic with constants, and selects whose
// condition is the same everywhere (wrapping of negative indices that never occur). Requires static
// extents. None: not recognised, or the numbers may not fit the type.
std::optional<Coordinate> coordinate_in(const hlo::Instr* x);

}  // namespace heddle::opt
