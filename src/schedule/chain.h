// Chains: products in a row, D0 = f0(A·W0), D1 = f1(D0·W1), …, as one kernel (stages.md §4.7 and
// §4.9). A block of rows of every D but the last lives in scratch with all its columns, so nothing
// is computed twice; the records' blocks say how many rows that are: those of one register tile
// (the first cache), or more (the second). Later convolutions are 1x1, stride 1, not padded.
#pragma once

#include <vector>

#include "base/decision.h"
#include "schedule/gemm.h"
#include "target/target.h"

namespace heddle::schedule {

struct Link {
  std::vector<StageId> joined;  // the product, then the maps that hang on it
  // Batch, lines (y) and rows (m) are the first link's, in the same order; or, if `counted`, there
  // is only m, which counts them through row-major.
  GemmShape shape;
  bool counted = false;
  StageId value;                  // what the next link reads; the last link: not valid
  std::vector<int> value_digits;  // by its out digit: the product's digit that it is
};

struct Chain {
  std::vector<Link> links;
  Decision decision = Decision::yes();
};

// At least two products of the GEMM family.
bool has_chain(const StageGraph& graph);
// Codes: `chain-consumers` (a value between the links has another reader, or leaves),
// `chain-operand` (a link does not read the one before as its left side, row for row),
// `chain-window` (a later convolution has a window, a stride or padding), `gemm-family`,
// `gemm-epilogue`.
Chain match_chain(const StageGraph& graph);
// A link whose A is the value of the one before.
Decision match_link(const StageGraph& graph, const Link& before, Link* link);

// Elements between rows of a value between the links: padded, so that rows of a tile do not fall
// into few sets of the first cache.
int64_t row_pitch(const StageGraph& graph, const Link& link);
// Bytes of scratch that the values between the links take under these records.
int64_t resident_bytes(const Chain& chain, const StageGraph& graph,
                       const std::vector<Gemm>& records);
int64_t resident_limit(const target::Target& target);

// One record a link; blocks of the first are those of all. Two residences are considered: the rows
// of one register tile, and a block of rows for the second cache.
std::vector<Gemm> choose_chain(const Chain& chain, const StageGraph& graph,
                               const target::Target& target);

}  // namespace heddle::schedule
