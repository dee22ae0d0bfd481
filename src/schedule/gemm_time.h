// Private to schedule: parts of the GEMM family's predicted time (gemm.h has that of a product).
#pragma once

#include <cstdint>

#include "schedule/gemm.h"

namespace heddle::schedule {

// Where B does not stay in the second cache the next panel comes from further away: how many times
// as long tiles take for it, in blocks of `rows` rows. Lines are fetched so many at a time, often
// more than there are.
double fetching_ahead(const Gemm& gemm, int64_t rows, const target::Target& target);

// Cycles of a convolution's tiles; rows of A lie `row_bytes` apart.
double window_cycles(const Gemm& gemm, const GemmShape& shape, int64_t row_bytes,
                     const target::Target& target);

}  // namespace heddle::schedule
