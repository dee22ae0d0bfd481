// The GEMM family: products of matrices, and convolutions as implicit ones. Its record, its
// legality predicate, its time (docs/gemm.md, stages.md §4.6 and §4.9).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/decision.h"
#include "schedule/stage_graph.h"
#include "target/target.h"

namespace heddle::schedule {

// Parameters of one kernel. A tile of `my` lines of `mr` rows by `nv` vectors of columns is held in
// registers; K runs in blocks of `kc`; B is read in panels of nv·lanes columns.
struct Gemm {
  int mr = 1, nv = 1, lanes = 16;
  int64_t kc = 0;       // elements of a block of K, where K is cut
  int ku = 4;           // unrolling of k
  int prefetch = 0;     // cache lines of the next panel fetched each ku steps of k
  int64_t m_block = 0;  // rows of a task, against one panel
  int my = 1;           // lines of a tile; 1 where the shape has none
  int64_t y_block = 1;  // lines of a task
  // B is copied into panels in scratch before the loops.
  bool copy_b = false;
  // Tasks run through the batch against one panel before they come to the next (else a panel's
  // neighbours come first, and share their rows of A).
  bool panels_first = false;
  // K is cut in blocks of kc: a task has so many panels, and keeps their sums in scratch from one
  // block to the next. 0: K is whole.
  int64_t panels = 0;
  bool operator==(const Gemm&) const = default;
};

// What of A is inside: 0 <= stride·out + dilation·k + offset < span. Elsewhere A is zero.
struct Window {
  int out = -1, k = -1;  // digits, or -1: extent 1
  int64_t stride = 0, dilation = 0, offset = 0, span = 0;
  bool operator==(const Window&) const = default;
};

// The type that a family's sums have: the value's own, or f32 for small floats. None: no family.
std::optional<Type> sum_type(Type type);

// A stage seen as C[batch…][y,m,n] = Σ_k A[…]·B[…]: the digits (or -1). Rows are numbered by
// (line, row): y and m, which stand in A alone.
struct GemmShape {
  std::vector<int> batch;       // out digits that are neither y, m nor n
  int y = -1, m = -1, n = -1;   // out digits; -1: extent 1. y: only beside windows
  std::vector<int> k;           // reduced digits, outermost first; at least one
  std::vector<Window> windows;  // at most one an out digit, and one a reduced digit
  int64_t y_extent = 1, m_extent = 1, n_extent = 1, k_extent = 1;
  int64_t b_n = 0;               // elements between columns of B
  int a_load = -1, b_load = -1;  // loads of the stage
  Type type = Type::f32;         // of the sums
  // B lies in panels [n/nr][k][nr] (a packed constant); nr columns each, 0 if not.
  int64_t b_panel = 0, b_panel_stride = 0;

  const Window* window_of(int out) const;  // none: null
  const Window* window_over(int k) const;
};

// No: which access does not fit the family.
struct GemmShapeOrNot {
  GemmShape shape;
  Decision decision = Decision::yes();
};
GemmShapeOrNot match_gemm(const StageGraph& graph, StageId dot);
// A batch digit that numbers groups of features of a convolution: neighbours in memory.
bool is_group(const GemmShape& shape, const Stage& stage, int digit);
// Can the shape's K be cut by this record? B in panels, blocks of whole elements of the outermost
// digit of K; a convolution's are lines of the window, which move with the lines of the image.
bool can_cut_k(const Gemm& gemm, const GemmShape& shape, const Stage& stage);
// How often an element of A is used, where A runs on along its rows (or along its batch) and not
// along k, which is deep: then a copy that runs along k may pay. 0 elsewhere.
int64_t uses_across(const StageGraph& graph);
// Code `gemm-family`: false where a matched shape would make too much code (gemm_axis.h).
Decision fits_family(const Gemm& gemm, const GemmShape& shape, const Stage& stage);

// The digits of every map that hangs on a dot, as expressions over the dot's out digits, by
// StageId. `joined`: the dot first, then the maps. No: a map's elements are not the dot's, one for
// one.
Decision invert_epilogue(const StageGraph& graph, const std::vector<StageId>& joined,
                         std::vector<std::vector<index::Expr>>* digits);

// The static rule of cpu-codegen §2.5: the record with the least predicted cycles; with panels
// already packed, among those of `nv` vectors (0: any).
Gemm choose_gemm(int64_t m, int64_t n, int64_t k, bool b_constant, const target::Target& target,
                 int nv = 0, Type sums = Type::f32);
// The same for any shape that match_gemm() gives; a_bytes: of the whole of A.
Gemm choose_gemm(const GemmShape& shape, const Stage& stage, int64_t a_bytes,
                 const target::Target& target);
double gemm_cycles(const Gemm& gemm, int64_t m, int64_t n, int64_t k, const target::Target& target);
std::string to_string(const Gemm& gemm);

}  // namespace heddle::schedule
