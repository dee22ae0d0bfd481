// How much code an epilogue makes: the tile of a template is written out, register by register, and
// so is everything that hangs on it.
#pragma once

#include "base/decision.h"
#include "schedule/gemm.h"
#include "schedule/stage_graph.h"

namespace heddle::schedule {

// Instructions of what hangs on a dot (the first of `joined`), for one tile, roughly.
int64_t code_of_tile(const StageGraph& graph, const std::vector<StageId>& joined, const Gemm& gemm);
// No, with code `gemm-epilogue`: that would be so many
// instructions, written out for each register of the tile, that the back end refuses them or takes
// seconds.
Decision fits_in_code(const StageGraph& graph, const std::vector<StageId>& joined,
                      const Gemm& gemm);

}  // namespace heddle::schedule
