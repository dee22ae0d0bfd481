// Links of rows in a chain (chain.h): maps and reductions over the columns of a block of rows in
// scratch, row by row. Before a product they are its prologue, after it the reductions of its
// epilogue; nothing is computed twice, because a block has all columns.
#pragma once

#include <vector>

#include "schedule/chain.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// Maps the out digits of a link's stages to digits of the block. `number`: of the link, whose shape
// and base are known, as are all values kept by earlier links. No, with code `chain-rows`: a stage
// has digits other than rows and columns, or reads other rows.
Decision match_row_digits(const StageGraph& graph, const Chain& chain, size_t number,
                          RowDigits* digits);

// The stages of a link as rows of joined instances, for one row of the block.
std::vector<Row> rows_of_link(const StageGraph& graph, const Link& link, int lanes);

// If rows read a value for the last time and compute another from it element by element, the new
// value overwrites the old one (softmax's weights overwrite the scores).
void share_places(const StageGraph& graph, Chain* chain);

}  // namespace heddle::schedule
