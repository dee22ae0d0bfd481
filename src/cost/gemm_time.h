// Predicted time of the GEMM family (docs/gemm.md).
#pragma once

#include <cstdint>

#include "stage/gemm_shape.h"
#include "target/target.h"

namespace heddle::cost {

// Flops per nanosecond of all cores with a record's instruction, operands in the first caches.
double flops_per_ns(const stage::Gemm& gemm, tensor::Type sums, const target::Target& target);

// Cycles of one core for a product of [m,k] by [k,n], of f32 or in vectors of gemm.lanes.
double gemm_cycles(const stage::Gemm& gemm, int64_t m, int64_t n, int64_t k,
                   const target::Target& target);

constexpr int64_t kOneBlock = 512;  // rows of a product that stay one block
// gemm_cycles() of `rows` rows in a kernel for `m`, whose tiles have two heights: the tiles of each
// height are rebalanced for the actual rows.
double bounded_cycles(stage::Gemm gemm, int64_t rows, int64_t m, int64_t n, int64_t k,
                      const target::Target& target);

// If B does not stay in the second cache, the next panel comes from farther away: the factor by
// which prefetching it slows tiles down, in blocks of `rows` rows. Each tile fetches a whole number
// of lines, often more than needed.
double fetching_ahead(const stage::Gemm& gemm, int64_t rows, const target::Target& target);

// Cycles of a convolution's tiles; `row_bytes`: the stride of the rows of A.
double window_cycles(const stage::Gemm& gemm, const stage::GemmShape& shape, int64_t row_bytes,
                     const target::Target& target);

}  // namespace heddle::cost
