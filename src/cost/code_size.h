// The size of an epilogue's code: the tile of a template is unrolled, register by register, and so
// is its epilogue.
#pragma once

#include "base/decision.h"
#include "stage/gemm_shape.h"
#include "stage/stage_graph.h"

namespace heddle::cost {

// Instructions of the epilogue of a dot (the first of `joined`), for one tile, roughly.
int64_t code_of_tile(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                     const stage::Gemm& gemm);
// The back end accepts 32,768 instructions per phase; the limit of the estimate for all tiles
// together.
inline constexpr int64_t kMostOfKernel = 24576;
// Instructions of all tiles in the kernel's code: interior ones, each kind at an edge of a window,
// and a narrow last panel; with the products themselves.
int64_t code_of_tiles(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                      const stage::Gemm& gemm, const stage::GemmShape& shape);
// No, with code `gemm-epilogue`: there would be so many instructions, unrolled for each register of
// the tile, that the back end refuses them or takes seconds.
Decision fits_in_code(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                      const stage::Gemm& gemm);
// The same for all tiles of a separate kernel.
Decision fits_in_code(const stage::StageGraph& graph, const std::vector<stage::StageId>& joined,
                      const stage::Gemm& gemm, const stage::GemmShape& shape);

}  // namespace heddle::cost
