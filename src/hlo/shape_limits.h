// Limits on array shapes in files: rank, bytes, layout and padding are bounded, so that nothing
// downstream of the readers overflows.
#pragma once

#include "base/error.h"
#include "tensor/shape.h"

namespace heddle::hlo {

// Error: more dimensions than kMaxRank, a negative extent, more than 2^46 bytes, a layout that does
// not fit the array.
Status check_array_shape(const tensor::Shape& shape);

}  // namespace heddle::hlo
