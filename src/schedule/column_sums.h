// Epilogue (iv): reductions over the rows of a product, or of a map behind it, as a part of its
// kernel. Every task sums up its rows in registers; where several blocks of rows share a column,
// the partial sums leave with the task and a second phase adds them in a fixed order. Sums for each
// image of a batch have a block of rows an image, and are whole.
#pragma once

#include <vector>

#include "schedule/gemm.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// `joined`: the product, then the maps of its epilogue. No, with code `gemm-epilogue`: it is
// another reduction.
Decision match_column_sum(const StageGraph& graph, const std::vector<StageId>& joined,
                          const GemmShape& shape, StageId reduce, ColumnSum* sum);

}  // namespace heddle::schedule
