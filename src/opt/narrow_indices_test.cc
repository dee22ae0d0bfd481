#include <gtest/gtest.h>

#include "opt/test_util.h"

namespace heddle::opt {
namespace {

// Index vectors an element: an index of a node, repeated over the features; the feature.
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

TEST(NarrowIndices, OthersStay) {
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
