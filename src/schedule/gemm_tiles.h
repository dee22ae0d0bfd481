// Records of the GEMM family whose tiles are computed by an instruction on tiles (kernel/mma.h):
// which shapes have them, and how their blocks are chosen (docs/gemm.md).
#pragma once

#include "schedule/gemm.h"

namespace heddle::schedule {

// The instruction on tiles that multiplies as `mma` does, and faster; null: the target has none.
const kernel::MmaDescriptor* find_tile(const kernel::MmaDescriptor& mma,
                                       const target::Target& target);
// The same for a shape, where its rows and words lie as fragments read them.
const kernel::MmaDescriptor* tile_of(const GemmShape& shape, const Stage& stage,
                                     const kernel::MmaDescriptor& mma,
                                     const target::Target& target);
target::Target without_tiles(target::Target target);

// Two by two fragments for gemm->mma, or as many as there are rows and columns, with panels of `nv`
// vectors (0: any). False: there is no instruction for that many rows and elements of k.
bool choose_fragments(int64_t m, int64_t n, int64_t k, int nv, const target::Target& target,
                      Gemm* gemm);
// Of a convolution with windows that tile_of() has an instruction for: fragments, blocks of lines,
// and panels of a task.
void choose_lines(const GemmShape& shape, const Stage& stage, int nv, const target::Target& target,
                  Gemm* gemm);

}  // namespace heddle::schedule
