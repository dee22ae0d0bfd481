#include <gtest/gtest.h>

#include "opt/test_util.h"

namespace heddle::opt {
namespace {

// One index vector per element: the index of a node, repeated over the features; and the feature.
#define VECTORS                                                      \
  "n = s32[5] parameter(1) m = s32[5] parameter(2)\n"                \
  "k = s32[5] and(n, m) w = s32[5,4] broadcast(k), dimensions={0}\n" \
  "c = s32[5,4] iota(), iota_dimension=1\n"                          \
  "wc = s32[5,4,1] reshape(w) cc = s32[5,4,1] reshape(c)\n"          \
  "v = s32[5,4,2] concatenate(wc, cc), dimensions={2}\n"

TEST(NarrowIndices, GatherTakesRows) {
  EXPECT_EQ(simplified("x = f32[7,4] parameter(0)\n" VECTORS
                       "ROOT r = f32[5,4] gather(x, v), offset_dims={}, "
                       "collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=2, "
                       "slice_sizes={1,1}",
                       "narrow_indices"),
            "gather(p0, reshape[5,1](broadcast[5]{0}(and(p1, p2))))");
}

TEST(NarrowIndices, WrappedIndicesAreComputedOnceARow) {
  EXPECT_EQ(
      simplified("x = f32[7,4] parameter(0)\n"
                 "n = s32[5] parameter(1) w = s32[5,4] broadcast(n), dimensions={0}\n"
                 "seven = s32[] constant(7) sevens = s32[5,4] broadcast(seven), dimensions={}\n"
                 "z = s32[] constant(0) zs = s32[5,4] broadcast(z), dimensions={}\n"
                 "less = pred[5,4] compare(w, zs), direction=LT\n"
                 "up = s32[5,4] add(w, sevens) i = s32[5,4] select(less, up, w)\n"
                 "c = s32[4] iota(), iota_dimension=0\n"
                 "cw = s32[5,4] broadcast(c), dimensions={1}\n"
                 "wc = s32[5,4,1] reshape(i) cc = s32[5,4,1] reshape(cw)\n"
                 "v = s32[5,4,2] concatenate(wc, cc), dimensions={2}\n"
                 "ROOT r = f32[5,4] gather(x, v), offset_dims={}, collapsed_slice_dims={0,1}, "
                 "start_index_map={0,1}, index_vector_dim=2, slice_sizes={1,1}",
                 "narrow_indices,algebraic,cse,dce"),
      "gather(p0, reshape[5,1](select(compare.LT(p1, broadcast[5]{}(0)), add(p1, "
      "broadcast[5]{}(7)), p1)))");
}

constexpr const char* kScatter = R"(HloModule m
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[3,7,4] parameter(0)
  u = f32[3,5,4] parameter(1)
  n = s32[5] parameter(2)
  w = s32[3,5,4] broadcast(n), dimensions={1}
  i = s32[3,5,4] iota(), iota_dimension=0
  k = s32[3,5,4] iota(), iota_dimension=2
  wc = s32[3,5,4,1] reshape(w)
  ic = s32[3,5,4,1] reshape(i)
  kc = s32[3,5,4,1] reshape(k)
  v = s32[3,5,4,3] concatenate(ic, wc, kc), dimensions={3}
  ROOT r = f32[3,7,4] scatter(x, v, u), update_window_dims={}, inserted_window_dims={0,1,2},
    scatter_dims_to_operand_dims={0,1,2}, index_vector_dim=3, to_apply=sum
})";

TEST(NarrowIndices, ScatterAddsRows) {
  auto module = parse(kScatter);
  const auto before = module->clone();
  run(*module, "narrow_indices,algebraic,dce");
  expect_same_values(*before, *module, 1, false, "rows");
  const hlo::Instr* scatter = module->entry()->root();
  const auto& attrs = scatter->attrs_as<hlo::ScatterAttrs>();
  EXPECT_EQ(scatter->operand(1)->shape().extents(), (hlo::Ints{5, 1}));
  EXPECT_EQ(attrs.update_window_dims, (hlo::Ints{0, 2}));
  EXPECT_EQ(attrs.inserted_window_dims, (hlo::Ints{1}));
  EXPECT_EQ(attrs.scatter_dims_to_operand_dims, (hlo::Ints{1}));
}

// x[n, m] for every n and m: positions, with wrapping of negative ones, which do not occur.
#define POSITIONS                                                                    \
  "one = s64[] constant(1) ones = s64[3] broadcast(one), dimensions={}\n"            \
  "three = s64[] constant(3) threes = s64[3] broadcast(three), dimensions={}\n"      \
  "z = s64[] constant(0) zs = s64[3] broadcast(z), dimensions={}\n"                  \
  "i = s64[3] iota(), iota_dimension=0 j = s64[3] multiply(i, ones)\n"               \
  "k = s64[3] add(j, zs) less = pred[3] compare(k, zs), direction=LT\n"              \
  "up = s64[3] add(k, threes) n = s64[3] select(less, up, k)\n"                      \
  "nb = s64[3,5] broadcast(n), dimensions={0} m = s64[5] iota(), iota_dimension=0\n" \
  "mb = s64[3,5] broadcast(m), dimensions={1} nc = s64[3,5,1] reshape(nb)\n"         \
  "mc = s64[3,5,1] reshape(mb) v = s64[3,5,2] concatenate(nc, mc), dimensions={2}\n"

TEST(NarrowIndices, EveryPositionIsTheOperand) {
  EXPECT_EQ(simplified("x = f32[3,5] parameter(0)\n" POSITIONS
                       "ROOT r = f32[3,5] gather(x, v), offset_dims={}, collapsed_slice_dims={0,1},"
                       " start_index_map={0,1}, index_vector_dim=2, slice_sizes={1,1}",
                       "narrow_indices,algebraic,dce"),
            "p0");
  EXPECT_EQ(simplified("x = f32[3,7] parameter(0)\n" POSITIONS
                       "ROOT r = f32[3,5] gather(x, v), offset_dims={}, collapsed_slice_dims={0,1},"
                       " start_index_map={0,1}, index_vector_dim=2, slice_sizes={1,1}",
                       "narrow_indices,algebraic,dce"),
            "slice[3,5]{0:3,0:5}(p0)");
}

TEST(NarrowIndices, PositionsAlongOneDimension) {
  // The position, in another order and repeated; with a dimension of one and a batch.
  EXPECT_EQ(simplified("x = f32[2,4,1,6] parameter(0) i = s32[5,4,1] iota(), iota_dimension=1\n"
                       "ROOT r = f32[5,2,4,6] gather(x, i), offset_dims={1,3}, "
                       "collapsed_slice_dims={1,2}, start_index_map={1}, index_vector_dim=2, "
                       "slice_sizes={2,1,1,6}",
                       "narrow_indices,algebraic,dce"),
            "broadcast[5,2,4,6]{1,2,3}(reshape[2,4,6](p0))");
  EXPECT_EQ(simplified("x = f32[3,4,6] parameter(0) i = s32[4,3,5,1] iota(), iota_dimension=0\n"
                       "ROOT r = f32[4,3,5,6] gather(x, i), offset_dims={3}, "
                       "collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
                       "start_indices_batching_dims={1}, index_vector_dim=3, slice_sizes={1,1,6}",
                       "narrow_indices,algebraic,dce"),
            "broadcast[4,3,5,6]{0,1,3}(transpose[4,3,6]{1,0,2}(p0))");
}

TEST(NarrowIndices, OthersStay) {
  // Every second position; negative positions; positions of a type too narrow for them.
  for (const char* position :
       {"i = s32[4,1] iota(), iota_dimension=0 j = s32[4,1] add(i, i)",
        "i = s32[4,1] iota(), iota_dimension=0 o = s32[] constant(1) "
        "p = s32[4,1] broadcast(o), dimensions={} j = s32[4,1] subtract(i, p)"})
    expect_unchanged(std::string("x = f32[9] parameter(0) ") + position +
                         " ROOT r = f32[4] gather(x, j), offset_dims={}, collapsed_slice_dims={0},"
                         " start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
                     "narrow_indices");
  expect_unchanged(
      "x = f32[300] parameter(0) j = s8[200,1] iota(), iota_dimension=0\n"
      "ROOT r = f32[200] gather(x, j), offset_dims={}, collapsed_slice_dims={0},"
      " start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
      "narrow_indices");
  // The index differs along the row; rows are longer than the operand's.
  expect_unchanged(
      "x = f32[7,4] parameter(0) w = s32[5,4] parameter(1)\n"
      "c = s32[5,4] iota(), iota_dimension=1\n"
      "wc = s32[5,4,1] reshape(w) cc = s32[5,4,1] reshape(c)\n"
      "v = s32[5,4,2] concatenate(wc, cc), dimensions={2}\n"
      "ROOT r = f32[5,4] gather(x, v), offset_dims={}, collapsed_slice_dims={0,1}, "
      "start_index_map={0,1}, index_vector_dim=2, slice_sizes={1,1}",
      "narrow_indices");
  expect_unchanged("x = f32[7,3] parameter(0)\n" VECTORS
                   "ROOT r = f32[5,4] gather(x, v), offset_dims={}, collapsed_slice_dims={0,1}, "
                   "start_index_map={0,1}, index_vector_dim=2, slice_sizes={1,1}",
                   "narrow_indices");
}

}  // namespace
}  // namespace heddle::opt
