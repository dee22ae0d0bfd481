// The GEMM family: matrix products, and convolutions as implicit GEMM. Its record, legality
// predicate and predicted time (docs/gemm.md, stages.md §4.6 and §4.9).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/decision.h"
#include "kernel/mma.h"
#include "schedule/stage_names.h"
#include "stage/epilogue.h"
#include "target/target.h"

namespace heddle::schedule {

// The type of the accumulators: the value's type, or f32 for small floats. None: not in the family.
std::optional<Type> sum_type(Type type);

// A refusal names the access that does not fit the family.
struct GemmShapeOrNot {
  GemmShape shape;
  Decision decision = Decision::yes();
};
// `rounded`: B is converted to fewer bits, which copying it into words can do (load_type()).
GemmShapeOrNot match_gemm(const StageGraph& graph, StageId dot, bool rounded = false);
// Whether the node converts a load to a float type of fewer bits.
bool is_rounding(const Stage& stage, const Node& node);
// Whether a batch digit numbers groups of features of a convolution, which are adjacent in memory.
bool is_group(const GemmShape& shape, const Stage& stage, int digit);
// The innermost batch digit that only A has, so that its elements may share a copy of B; -1: none.
int shared_batch(const GemmShape& shape, const Stage& stage);
// Whether this record can cut the shape's K: B is in panels, and blocks are whole elements of the
// outermost digit of K (for a convolution: lines of the window, which move with the image's lines).
bool can_cut_k(const Gemm& gemm, const GemmShape& shape, const Stage& stage);
// How often an element of A is used, if A is contiguous along its rows (or its batch) but not along
// k, and k is deep or read in words of `word` elements: a copy that is contiguous along k may then
// pay. Otherwise 0.
int64_t uses_across(const StageGraph& graph, int64_t word);
// No, with code `gemm-family`: the record's panels, words, blocks of K or shared copies do not suit
// the shape, or there would be too much code (gemm_axis.h).
Decision fits_family(const Gemm& gemm, const GemmShape& shape, const Stage& stage);

// The instruction for operands of types a and b: the first of mma.def that accumulates in `sums`,
// that the target has and that is faster there than plain multiply-adds; otherwise the plain one.
const kernel::MmaDescriptor* find_product(Type a, Type b, Type sums, const target::Target& target);
// The same for a matched shape: its words need whole elements of k, and a B that is packed in words
// or copied for many rows.
const kernel::MmaDescriptor* find_product(const GemmShape& shape, const Stage& stage,
                                          const target::Target& target);

// The same; reorders k if that makes words whole.
const kernel::MmaDescriptor* choose_product(GemmShape* shape, const Stage& stage,
                                            const target::Target& target);

// The operands of a sum of products, by loads: multiply(A, B) with nothing else in the body, B a
// load, A a load or zero outside its guards, both converted to the product's type if they have
// another one. `rounded`: B was converted to fewer bits before.
struct Sides {
  int a = -1, b = -1;
};
std::optional<Sides> find_sides(const Stage& stage, bool rounded = false);
// Whether anything else reads the buffer of this load: a buffer read in words has no other type.
bool is_read_elsewhere(const StageGraph& graph, StageId stage, int load);

// The type in which a load is multiplied: the type it reads, or the type it is rounded to.
Type load_type(const Stage& stage, int load);
// The number of batch elements that share a copy of B in panels of `width` columns, if a task has
// `rows` rows of each.
int64_t choose_shared(const GemmShape& shape, const Stage& stage, int64_t rows, int64_t width,
                      const target::Target& target);

// The target under strict numerics: instructions that flush subnormal numbers are no faster there.
target::Target without_flushing(target::Target target);

// The static rule of cpu-codegen §2.5: the record with the least predicted cycles; with panels
// already packed, among those of `nv` vectors (0: any).
Gemm choose_gemm(int64_t m, int64_t n, int64_t k, bool b_constant, const target::Target& target,
                 int nv = 0, Type sums = Type::f32);
// The same for any shape that match_gemm() returns; `a_bytes`: the size of all of A.
Gemm choose_gemm(const GemmShape& shape, const Stage& stage, int64_t a_bytes,
                 const target::Target& target,
                 const kernel::MmaDescriptor* mma = kernel::plain_mma());

}  // namespace heddle::schedule
