// Chains: products in a row, D0 = f0(A·W0), D1 = f1(D0·W1), …, as one kernel (stages.md §4.7 and
// §4.9). A block of rows of every D but the last lives in scratch with all its columns, so nothing
// is computed twice; the records' blocks say how many rows that are: those of one register tile
// (the first cache), or more (the second). Later convolutions are 1x1, stride 1, not padded.
// Before, between and behind the products there may be links of rows (chain_rows.h): layer norm,
// softmax, … of the block, row by row. Attention is product, rows, product (§4.8).
#pragma once

#include <vector>

#include "base/decision.h"
#include "schedule/gemm.h"
#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

bool is_product(const Stage& stage);
// At least two products of the GEMM family.
bool has_chain(const StageGraph& graph);
// One, with something in front of it, or reductions behind it.
bool may_have_rows(const StageGraph& graph);
// Codes: `chain-consumers` (a value between the links is read where it is not at hand),
// `chain-operand` (a link does not read the one before as its left side, row for row),
// `chain-window` (a later convolution has a window, a stride or padding), `chain-rows` (what stands
// between products does not go row by row), `gemm-family`, `gemm-epilogue`.
Chain match_chain(const StageGraph& graph);
// A link whose A is the value of the one before.
Decision match_link(const StageGraph& graph, const Link& before, Link* link);

// One record a link (of rows: their block alone); blocks of the first are those of all. Two
// residences are considered: the rows of one register tile, and a block of rows for the second
// cache.
std::vector<Gemm> choose_chain(const Chain& chain, const StageGraph& graph,
                               const target::Target& target);

}  // namespace heddle::schedule
