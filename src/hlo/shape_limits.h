// What a file may say of an array: its rank, bytes, layout and padding are bounded, so that nothing
// behind the readers overflows.
#pragma once

#include "base/error.h"
#include "tensor/shape.h"

namespace heddle::hlo {

// Error: more dimensions than kMaxRank, a negative extent, more than 2^46 bytes, a layout that is
// none of this array's.
Status check_array_shape(const tensor::Shape& shape);

}  // namespace heddle::hlo
