// Epilogue (iv): reductions over the rows of a product, or of what hangs on it, as a part of its
// kernel. Every task sums up its rows in registers; where several blocks of rows share a column,
// the partial sums leave with the task and a second phase adds them in a fixed order. Sums for each
// image of a batch have a block of rows an image, and are whole.
#pragma once

#include <vector>

#include "schedule/gemm.h"
#include "schedule/placed.h"

namespace heddle::schedule {

struct ColumnSum {
  StageId stage;
  std::vector<int> product;  // by out digit: the product's digit, or -1: the block of rows
  // The red digits that stand for m and y: with these at the row's and line's numbers, and all
  // others at 0, its loads are those of the row.
  int row = -1, line = -1;
  int64_t block = 0;  // rows, or lines, that the block's digit counts by; 0: no such digit
};

// `joined`: the product, then the maps that hang on it. No, with code `gemm-epilogue`: it is
// another reduction.
Decision match_column_sum(const StageGraph& graph, const std::vector<StageId>& joined,
                          const GemmShape& shape, StageId reduce, ColumnSum* sum);
// The fusion of product `dot` with such reductions, and maps of their results.
PlacedFusion place_column_sums(StageGraph graph, StageId dot, const GemmShape& shape,
                               const target::Target& target);

}  // namespace heddle::schedule
