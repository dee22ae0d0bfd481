// Chains of products, D0 = f0(A·W0), D1 = f1(D0·W1), …, as one kernel (back-to-back GEMM; stages.md
// §4.7 and §4.9). A block of rows of every D but the last is kept in scratch with all its columns,
// so nothing is computed twice. The records' blocks give the number of rows: one register tile (for
// the first cache) or more (for the second). Later convolutions are 1x1, stride 1, not padded.
// Before, between and after the products there may be links of rows (chain_rows.h): layer norm,
// softmax, … of the block, row by row. Attention is product, rows, product (§4.8).
#pragma once

#include <vector>

#include "base/decision.h"
#include "schedule/gemm.h"
#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

bool is_product(const Stage& stage);
// Whether there are at least two products.
bool has_chain(const StageGraph& graph);
// Whether there is one product, with stages before it or reductions after it.
bool may_have_rows(const StageGraph& graph);
// Codes: `chain-operand` (a link does not read the previous one as its left operand, row for row),
// `chain-window` (a later convolution has a window, a stride or padding), `chain-rows` (stages
// between products do not work row by row), `gemm-family`, `gemm-epilogue`.
Chain match_chain(const StageGraph& graph);
// Matches a link whose A is the value of link `before`.
Decision match_link(const StageGraph& graph, const Link& before, Link* link);

// One record per link (of a link of rows, only the block is used); the blocks of the first apply to
// all. Two residences are considered: the rows of one register tile, and a block of rows for the
// second cache.
std::vector<Gemm> choose_chain(const Chain& chain, const StageGraph& graph,
                               const target::Target& target);

}  // namespace heddle::schedule
