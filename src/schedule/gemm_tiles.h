// Records of the GEMM family whose tiles are computed by an instruction on tiles (kernel/mma.h):
// which shapes have them, and how their blocks are chosen (docs/gemm.md).
#pragma once

#include "schedule/gemm.h"

namespace heddle::schedule {

// The tile instruction that computes the same as `mma`, faster; null if the target has none.
const kernel::MmaDescriptor* find_tile(const kernel::MmaDescriptor& mma,
                                       const target::Target& target);
// The same for a shape; null if its rows and words do not have the layout that fragments read.
const kernel::MmaDescriptor* tile_of(const GemmShape& shape, const Stage& stage,
                                     const kernel::MmaDescriptor& mma,
                                     const target::Target& target);
target::Target without_tiles(target::Target target);

// Two by two fragments for gemm->mma, or as many as there are rows and columns, with panels of `nv`
// vectors (0: any). False: there is no instruction for that many rows and elements of k.
bool choose_fragments(int64_t m, int64_t n, int64_t k, int nv, const target::Target& target,
                      Gemm* gemm);
// For a convolution with windows for which tile_of() has an instruction: chooses fragments, blocks
// of lines, and the panels of a task.
void choose_lines(const GemmShape& shape, const Stage& stage, int nv, const target::Target& target,
                  Gemm* gemm);

}  // namespace heddle::schedule
