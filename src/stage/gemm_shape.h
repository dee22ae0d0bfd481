// The tile of the GEMM family that a row of a schedule may be: its parameter record, and the
// matched shape of the product, by value, so that it is not matched again (gemm.h matches and
// chooses; docs/gemm.md).
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/mma.h"
#include "stage/stage_graph.h"

namespace heddle::stage {

// Parameters of one kernel. A tile of `my` lines of `mr` rows by `nv` vectors of columns is held in
// registers; K runs in blocks of `kc`; B is read in panels of nv·lanes columns.
struct Gemm {
  int mr = 1, nv = 1, lanes = 16;
  int64_t kc = 0;       // elements of a block of K, if K is cut
  int ku = 4;           // unrolling of k
  int prefetch = 0;     // cache lines of the next panel fetched each ku steps of k
  int64_t m_block = 0;  // rows of a task, for one panel
  int my = 1;           // lines of a tile; 1 if the shape has none
  int64_t y_block = 1;  // lines of a task
  // B is copied into panels in scratch before the loops.
  bool copy_b = false;
  // Batch elements that a task computes with one copy of B (of schedule::shared_batch()'s digit,
  // whose extent it divides).
  int64_t shared = 1;
  // Tasks go through the batch with one panel before the next panel (otherwise neighbouring panels
  // come first, and share their rows of A).
  bool panels_first = false;
  // If K is cut in blocks of kc: the number of panels of a task, which keeps their sums in scratch
  // from one block to the next. 0: K is whole.
  int64_t panels = 0;
  // The instruction of a step of k; its k elements are a word of A and of B. B is copied or packed
  // in words.
  const kernel::MmaDescriptor* mma = kernel::plain_mma();
  int64_t word() const { return mma->k; }
  // An instruction on tiles with the operands of `mma`, which computes whole tiles of 16 rows.
  // Null: `mma` computes all of them.
  const kernel::MmaDescriptor* tile = nullptr;
  bool operator==(const Gemm&) const = default;
};

// Where A is inside: 0 <= stride·out + dilation·k + offset < span. Elsewhere A is zero.
struct Window {
  int out = -1, k = -1;  // digits, or -1: extent 1
  int64_t stride = 0, dilation = 0, offset = 0, span = 0;
  bool operator==(const Window&) const = default;
};

// A stage seen as C[batch…][y,m,n] = Σ_k A[…]·B[…]: the digits (or -1). Rows are numbered by (line,
// row): y and m, which appear in A only.
struct GemmShape {
  std::vector<int> batch;       // out digits that are neither y, m nor n
  int y = -1, m = -1, n = -1;   // out digits; -1: extent 1. y: only with windows
  std::vector<int> k;           // reduced digits, outermost first; at least one
  std::vector<Window> windows;  // at most one per out digit, and one per reduced digit
  int64_t y_extent = 1, m_extent = 1, n_extent = 1, k_extent = 1;
  int64_t b_n = 0;               // elements between columns of B
  int a_load = -1, b_load = -1;  // loads of the stage
  Type type = Type::f32;         // of the sums
  // B is in panels [n/nr][k][nr] (a packed constant); nr columns each, 0 if not.
  // With words of k: [n/nr][k/word][nr][word], the stride in words.
  int64_t b_panel = 0, b_panel_stride = 0, b_word = 1;

  const Window* window_of(int out) const;  // none: null
  const Window* window_over(int k) const;
};

// Whether rows of A are copied into scratch, line by line (window_lines.h).
inline bool copies_lines(const Gemm& gemm, const GemmShape& shape) {
  return gemm.tile && !shape.windows.empty();
}

// A reduction over the rows of a product, in its epilogue (column_sums.h).
struct ColumnSum {
  StageId stage;
  std::vector<int> product;  // by out digit: the product's digit, or -1: the block of rows
  // The red digits for m and y: with these at the row's and line's numbers, and all others at 0,
  // its loads read the elements of the row.
  int row = -1, line = -1;
  int64_t block = 0;  // rows, or lines, per step of the block's digit; 0: no block
};

// The index of element `part` of an operand's word, if digit `k` (of a shape: the innermost of its
// k) counts words of `word` elements. `extents` are the stage's, with words in that digit.
index::Expr in_words(const index::Expr& at, int k, int64_t word,
                     const std::vector<int64_t>& extents, int64_t part = 0);
index::Expr in_words(const index::Expr& at, const GemmShape& shape, int64_t word,
                     const std::vector<int64_t>& extents, int64_t part = 0);

// A product: the first stage of its row. Stages joined to it are its epilogue.
struct GemmTile {
  Gemm record;
  GemmShape shape;
  std::vector<ColumnSum> sums;  // of the joined reductions, in their order
};

}  // namespace heddle::stage
