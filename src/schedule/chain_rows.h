// Links of rows in a chain (chain.h): maps and reductions over the columns of a block of rows that
// lies in scratch, row by row. In front of a product they are its prologue, behind it the
// reductions of its epilogue; nothing is computed twice, for a block has all columns.
#pragma once

#include <vector>

#include "schedule/chain.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// Which digits of a link's stages are those of the block. `number`: of the link, whose shape and
// base are known, as is all that links before it keep. No, with code `chain-rows`: a stage has
// other digits than rows and columns, or takes its rows elsewhere.
Decision match_row_digits(const StageGraph& graph, const Chain& chain, size_t number,
                          RowDigits* digits);

// The stages of a link as rows of joined instances, for one row of the block.
std::vector<Row> rows_of_link(const StageGraph& graph, const Link& link, int lanes);

// Where rows read a value for the last time and make another one of it, element by element, the new
// one takes its place (softmax's weights that of the scores).
void share_places(const StageGraph& graph, Chain* chain);

}  // namespace heddle::schedule
