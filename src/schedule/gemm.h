// The GEMM family: its record, its legality predicate, its time (templates.md, cpu-codegen.md §2).
#pragma once

#include <cstdint>
#include <string>

#include "base/decision.h"
#include "schedule/stage_graph.h"
#include "target/target.h"

namespace heddle::schedule {

// Parameters of one kernel. `mr` rows and `nv` vectors of columns are held in registers; K runs in
// blocks of `kc`; B is read in panels of nv·lanes columns.
struct Gemm {
  int mr = 1, nv = 1, lanes = 16;
  int64_t kc = 0;                  // whole K where it is not smaller
  int ku = 4;                      // unrolling of k
  int prefetch = 0;                // cache lines of the next panel fetched each ku steps of k
  int64_t m_block = 0;             // rows of a task, against one panel
  // Copies of operands into scratch before the loops: B into panels (a gather where its columns are
  // not contiguous), A into rows.
  bool copy_b = false;
  bool operator==(const Gemm&) const = default;
};

// A dot stage seen as C[batch…][m,n] = Σ_k A[…]·B[…]: the digit (or -1) and element strides.
struct GemmShape {
  std::vector<int> batch;          // out digits that are neither m nor n
  int m = -1, n = -1;              // out digits; -1: extent 1
  std::vector<int> k;              // reduced digits, outermost first; at least one
  int64_t m_extent = 1, n_extent = 1, k_extent = 1;
  int64_t b_n = 0;                 // elements between columns of B
  int a_load = -1, b_load = -1;    // loads of the stage
  // B lies in panels [n/nr][k][nr] (a packed constant); nr columns each, 0 if not.
  int64_t b_panel = 0, b_panel_stride = 0;
};

// No: which access does not fit the family.
struct GemmShapeOrNot {
  GemmShape shape;
  Decision decision = Decision::yes();
};
GemmShapeOrNot match_gemm(const StageGraph& graph, StageId dot);

// The digits of every map that hangs on the dot, as expressions over the dot's out digits, by
// StageId. No: a map's elements are not the dot's, one for one.
Decision invert_epilogue(const StageGraph& graph, StageId dot,
                         std::vector<std::vector<index::Expr>>* digits);

// The static rule of cpu-codegen §2.5: the record with the least predicted cycles; with panels
// already packed, among those of `nv` vectors (0: any).
Gemm choose_gemm(int64_t m, int64_t n, int64_t k, bool b_constant,
                 const target::Target& target, int nv = 0);
double gemm_cycles(const Gemm& gemm, int64_t m, int64_t n, int64_t k, const target::Target& target);
std::string to_string(const Gemm& gemm);

}  // namespace heddle::schedule
