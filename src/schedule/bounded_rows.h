// Products whose rows may be those of a bounded dimension (hlo/dim_classes.h): kernels are made for
// the bound, and run for fewer rows in tiles that are balanced then (lower/trim_tiles.h).
#pragma once

#include <cstdint>

#include "hlo/module.h"
#include "schedule/gemm.h"

namespace heddle::schedule {

// Whether dimensions of the instruction's module may stand at a bound.
bool is_bounded(const hlo::Instr* instr);
// How many of `rows` a product has at least; `rows` where its module has no bounds.
int64_t least_rows(const hlo::Instr* dot, int64_t rows);
// choose_gemm() for a product of `least` to `m` rows: the record with the least predicted cycles a
// row over these.
Gemm choose_gemm_between(int64_t least, int64_t m, int64_t n, int64_t k, bool b_constant,
                         const target::Target& target, int nv = 0, Type sums = Type::f32,
                         const kernel::MmaDescriptor* mma = kernel::plain_mma());

}  // namespace heddle::schedule
