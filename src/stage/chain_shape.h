// The matched form of a chain of products (chain.h), as plain data.
#pragma once

#include <vector>

#include "base/decision.h"
#include "stage/gemm_shape.h"

namespace heddle::stage {

// By stage of a link of rows and out digit: the corresponding digit of the link's base (shape.n:
// columns).
using RowDigits = std::vector<std::vector<int>>;

// A value of a link that a later link reads: its rows of the block stay in scratch.
struct Kept {
  StageId stage;
  std::vector<int> digits;  // by out digit: the corresponding digit of the link's base
  int column = -1;          // out digit; -1: one element per row
  StageId over;             // an earlier link's value that it overwrites, element by element
};

struct Link {
  std::vector<StageId> joined;  // the product, then its epilogue's maps; or stages in rows
  bool rows = false;            // no product
  // The stage whose digits `shape` refers to: the product; for rows, the previous product, or their
  // value if they come first.
  StageId base;
  // Batch, lines (y) and rows (m) are the first link's, in the same order; or, if `counted`, there
  // is only m, which enumerates them in row-major order. For rows, n_extent is the value's.
  GemmShape shape;
  bool counted = false;
  StageId value;  // the next product's left operand, or the kept value; the last link: not valid
  std::vector<int> value_digits;  // by the value's out digit: the base's digit
  std::vector<Kept> kept;         // includes `value`
  RowDigits row_digits;           // of a link of rows
};

struct Chain {
  std::vector<Link> links;
  std::vector<Gemm> records;  // by link, after placement; for rows only their block
  Decision decision = Decision::yes();
};

// The first link that is a product.
const Link& first_product(const Chain& chain);

// The row stride of a kept value in elements, padded so that the rows of a tile do not map to few
// sets of the first cache.
int64_t row_pitch(const StageGraph& graph, const Kept& kept);
int64_t row_bytes(const StageGraph& graph, const Kept& kept);
// Rows of the largest block.
int64_t block_rows(const Chain& chain, const StageGraph& graph, const std::vector<Gemm>& records);
// Bytes of scratch that the values between the links take under these records.
int64_t resident_bytes(const Chain& chain, const StageGraph& graph,
                       const std::vector<Gemm>& records);

}  // namespace heddle::stage
