// Epilogue (iv): reductions over the rows of a product, or of a map after it, inside its kernel.
// Every task reduces its rows in registers; where several blocks of rows share a column, tasks
// store partial sums and a second phase adds them in a fixed order. Sums per image of a batch have
// one block of rows per image and need no second phase.
#pragma once

#include <vector>

#include "schedule/gemm.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// `joined`: the product, then the maps of its epilogue. No, with code `gemm-epilogue`: not a
// reduction of this kind.
Decision match_column_sum(const StageGraph& graph, const std::vector<StageId>& joined,
                          const GemmShape& shape, StageId reduce, ColumnSum* sum);

}  // namespace heddle::schedule
