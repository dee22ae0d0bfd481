// A chain of products (chain.h) as it was matched, by value.
#pragma once

#include <vector>

#include "base/decision.h"
#include "stage/gemm_shape.h"

namespace heddle::stage {

// By stage of a link of rows and out digit: the digit of the link's base that it is (shape.n:
// columns).
using RowDigits = std::vector<std::vector<int>>;

// What a later link reads of one: its rows of the block stay in scratch.
struct Kept {
  StageId stage;
  std::vector<int> digits;  // by out digit: the digit of the link's base that it is
  int column = -1;          // out digit; -1: one element a row
  StageId over;             // a value of a link before that it replaces, element by element
};

struct Link {
  std::vector<StageId> joined;  // the product, then its epilogue's maps; or stages in rows
  bool rows = false;            // no product
  // The stage whose digits `shape` speaks of: the product; of rows, the product before, or, where
  // they come first, their value.
  StageId base;
  // Batch, lines (y) and rows (m) are the first link's, in the same order; or, if `counted`, there
  // is only m, which counts them through row-major. Of rows: n_extent is the value's.
  GemmShape shape;
  bool counted = false;
  StageId value;  // the left side of the next product, or what is kept; the last link: not valid
  std::vector<int> value_digits;  // by its out digit: the base's digit that it is
  std::vector<Kept> kept;         // the value among them
  RowDigits row_digits;           // of a link of rows
};

struct Chain {
  std::vector<Link> links;
  std::vector<Gemm> records;  // by link, once it is placed; of rows: their block alone
  Decision decision = Decision::yes();
};

// The first one that is a product.
const Link& first_product(const Chain& chain);

// Elements between rows of what is kept: padded, so that rows of a tile do not fall into few sets
// of the first cache.
int64_t row_pitch(const StageGraph& graph, const Kept& kept);
int64_t row_bytes(const StageGraph& graph, const Kept& kept);
// Rows of the largest block.
int64_t block_rows(const Chain& chain, const StageGraph& graph, const std::vector<Gemm>& records);
// Bytes of scratch that the values between the links take under these records.
int64_t resident_bytes(const Chain& chain, const StageGraph& graph,
                       const std::vector<Gemm>& records);

}  // namespace heddle::stage
