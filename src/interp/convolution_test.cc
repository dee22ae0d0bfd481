#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

std::string convolve(const std::string& result, const std::string& x, const std::string& kernel,
                     const std::string& attrs) {
  return run_op("convolution", result, {x, kernel}, attrs);
}

TEST(Convolution, OneDimension) {
  const std::string x = "s32[1,1,5] {{{1,2,3,4,5}}}", k = "s32[1,1,3] {{{1,10,100}}}";
  const std::string labels = ", dim_labels=bf0_oi0->bf0";
  EXPECT_EQ(convolve("s32[1,1,3]", x, k, "window={size=3}" + labels), "{ { {321, 432, 543} } }");
  EXPECT_EQ(convolve("s32[1,1,3]", x, k, "window={size=3 stride=2 pad=1_1}" + labels),
            "{ { {210, 432, 54} } }");
  EXPECT_EQ(convolve("s32[1,1,3]", x, k, "window={size=3 rhs_reversal=1}" + labels),
            "{ { {123, 234, 345} } }");
  EXPECT_EQ(convolve("s32[1,1,1]", x, k, "window={size=3 rhs_dilate=2}" + labels), "{ { {531} } }");
  EXPECT_EQ(convolve("s32[1,1,7]", x, k, "window={size=3 lhs_dilate=2}" + labels),
            "{ { {201, 20, 302, 30, 403, 40, 504} } }");
  EXPECT_EQ(convolve("s32[1,1,1]", x, k, "window={size=3 pad=-1_-1}" + labels), "{ { {432} } }");
}

TEST(Convolution, TwoDimensionsInAnyOrder) {
  // The same numbers with features last and in front.
  EXPECT_EQ(
      convolve("s32[1,2,2,1]", "s32[1,2,2,2] {{{{1,2},{3,4}},{{5,6},{7,8}}}}",
               "s32[1,1,2,1] {{{{1},{10}}}}", "window={size=1x1}, dim_labels=b01f_01io->b01f"),
      "{ { { {21}, {43} }, { {65}, {87} } } }");
  EXPECT_EQ(
      convolve("s32[1,1,2,2]", "s32[1,2,2,2] {{{{1,2},{3,4}},{{5,6},{7,8}}}}",
               "s32[1,2,1,1] {{{{1}},{{10}}}}", "window={size=1x1}, dim_labels=bf01_oi01->bf01"),
      "{ { { {51, 62}, {73, 84} } } }");
  // The first spatial dimension of the input is its last.
  EXPECT_EQ(
      convolve("s32[1,1,2,1]", "s32[1,1,2,2] {{{{1,2},{3,4}}}}", "s32[2,1,1,1] {{{{1}}},{{{10}}}}",
               "window={size=2x1}, dim_labels=bf10_01io->bf10"),
      "{ { { {21}, {43} } } }");
}

TEST(Convolution, FeatureGroups) {
  // Depthwise with two outputs a feature: feature 0 feeds outputs 0 and 1, feature 1 the others.
  EXPECT_EQ(convolve("s32[1,2,4]", "s32[1,2,2] {{{1,2},{3,4}}}", "s32[1,1,4] {{{1,10,100,1000}}}",
                     "window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
            "{ { {1, 10, 200, 2000}, {3, 30, 400, 4000} } }");
}

TEST(Convolution, BatchGroups) {
  // Batches 0, 1 make output features 0; batches 2, 3 output feature 1.
  EXPECT_EQ(
      convolve("s32[2,1,2]", "s32[4,1,1] {{{1}},{{2}},{{3}},{{4}}}", "s32[1,1,2] {{{10,100}}}",
               "window={size=1}, dim_labels=b0f_0io->b0f, batch_group_count=2"),
      "{ { {10, 300} }, { {20, 400} } }");
}

TEST(Convolution, WithoutSpatialDimensionsIsAProduct) {
  EXPECT_EQ(convolve("f32[1,2]", "f32[1,2] {{1,2}}", "f32[2,2] {{1,2},{3,4}}",
                     "window={}, dim_labels=bf_io->bf"),
            "{ {7, 10} }");
}

TEST(Convolution, AccumulatesWide) {
  EXPECT_EQ(convolve("bf16[1,1,1]", "bf16[1,1,4] {{{256,1,1,1}}}",
                     "bf16[1,4,1] {{{1},{1},{1},{1}}}", "window={size=1}, dim_labels=b0f_0io->b0f"),
            "{ { {260} } }");
}

}  // namespace
}  // namespace heddle::interp
