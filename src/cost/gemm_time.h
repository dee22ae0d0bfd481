// Predicted time of the GEMM family (docs/gemm.md).
#pragma once

#include <cstdint>

#include "stage/gemm_shape.h"
#include "target/target.h"

namespace heddle::cost {

// Flops of all cores by what a record multiplies with, its operands in the first caches.
double flops_per_ns(const stage::Gemm& gemm, tensor::Type sums, const target::Target& target);

// Cycles of one core for a product of [m,k] by [k,n], of f32 or in vectors of gemm.lanes.
double gemm_cycles(const stage::Gemm& gemm, int64_t m, int64_t n, int64_t k,
                   const target::Target& target);

constexpr int64_t kOneBlock = 512;  // rows of a product that stay one block
// gemm_cycles() of `rows` in a kernel for `m`, whose tiles are of two heights: those of each height
// are balanced for the rows that are there.
double bounded_cycles(stage::Gemm gemm, int64_t rows, int64_t m, int64_t n, int64_t k,
                      const target::Target& target);

// Where B does not stay in the second cache the next panel comes from further away: how many times
// as long tiles take for it, in blocks of `rows` rows. Lines are fetched so many at a time, often
// more than there are.
double fetching_ahead(const stage::Gemm& gemm, int64_t rows, const target::Target& target);

// Cycles of a convolution's tiles; rows of A lie `row_bytes` apart.
double window_cycles(const stage::Gemm& gemm, const stage::GemmShape& shape, int64_t row_bytes,
                     const target::Target& target);

}  // namespace heddle::cost
