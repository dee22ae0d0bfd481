// Products whose row count may be a bounded dimension (hlo/dim_classes.h): kernels are compiled for
// the bound and run with fewer rows, in tiles rebalanced for the actual extent
// (lower/trim_tiles.h).
#pragma once

#include <cstdint>

#include "hlo/module.h"
#include "schedule/gemm.h"

namespace heddle::schedule {

// Whether the instruction's module has bounded dimensions.
bool is_bounded(const hlo::Instr* instr);
// The least number of rows of a product compiled for `rows`; `rows` if its module has no bounds.
int64_t least_rows(const hlo::Instr* dot, int64_t rows);
// choose_gemm() for a product of `least` to `m` rows: the record with the least predicted cycles
// per row over that range.
Gemm choose_gemm_between(int64_t least, int64_t m, int64_t n, int64_t k, bool b_constant,
                         const target::Target& target, int nv = 0, Type sums = Type::f32,
                         const kernel::MmaDescriptor* mma = kernel::plain_mma());

}  // namespace heddle::schedule
