#include <gtest/gtest.h>

#include "opt/test_util.h"

namespace heddle::opt {
namespace {

#define IMAGE "x = f32[2,2,3,4] parameter(0)\n"
#define MATRIX                                                                      \
  "i = s32[24,3] iota(), iota_dimension=0 j = s32[24,3] iota(), iota_dimension=1\n" \
  "m = s32[24,3] multiply(i, i) k = s32[24,3] add(m, j) w = f32[24,3] convert(k)\n"
#define PRODUCT(rows) \
  "f = f32[" rows     \
  ",24] reshape(t)\nROOT r = dot(f, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"

TEST(PermuteWeights, AFlattenedImage) {
  // Features last in memory, first in the flattened row.
  EXPECT_EQ(
      simplified(IMAGE MATRIX "t = f32[2,4,2,3] transpose(x), dimensions={0,3,1,2}\n" PRODUCT("2"),
                 "permute_weights", true),
      "dot[2,3]{b/ c1/0}(reshape[2,24](p0), reshape[24,3](transpose[2,3,4,3]{1,2,0,3}(reshape"
      "[4,2,3,3](convert.f32(add(multiply(iota[24,3]{0}(), iota[24,3]{0}()), "
      "iota[24,3]{1}()))))))");
}

TEST(PermuteWeights, OthersStay) {
  // Rows out of order; weights that are not constant; a transpose with other readers.
  expect_unchanged(IMAGE MATRIX
                   "t = f32[4,2,2,3] transpose(x), dimensions={3,0,1,2}\n"
                   "f = f32[4,12] reshape(t) v = f32[12,6] reshape(w)\n"
                   "ROOT r = dot(f, v), lhs_contracting_dims={1}, "
                   "rhs_contracting_dims={0}",
                   "permute_weights");
  expect_unchanged(IMAGE
                   "w = f32[24,3] parameter(1)\n"
                   "t = f32[2,4,2,3] transpose(x), dimensions={0,3,1,2}\n" PRODUCT("2"),
                   "permute_weights");
  expect_unchanged(IMAGE MATRIX
                   "t = f32[2,4,2,3] transpose(x), dimensions={0,3,1,2}\n"
                   "f = f32[2,24] reshape(t)\n"
                   "d = dot(f, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                   "ROOT r = tuple(d, t)",
                   "permute_weights");
}

}  // namespace
}  // namespace heddle::opt
