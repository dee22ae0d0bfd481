// convolution_to_dot, canonicalize_dot, fold_scale_into_weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string convolution(std::string_view input, std::string_view kernel, std::string_view output,
                        std::string_view attrs) {
  return fmt::format(
      "x = f32[{}] parameter(0) k = f32[{}] parameter(1)\n"
      "ROOT r = f32[{}] convolution(x, k), {}",
      input, kernel, output, attrs);
}

TEST(ConvolutionToDot, Pointwise) {
  EXPECT_EQ(simplified(convolution("2,5,6,3", "1,1,3,4", "2,5,6,4",
                                   "window={size=1x1}, dim_labels=b01f_01io->b01f"),
                       "convolution_to_dot,algebraic", true),
            "dot[2,5,6,4]{b/ c3/0}(p0, reshape[3,4](p1))");
  // One image with the channels in front: the kernel comes first, nothing is transposed.
  EXPECT_EQ(simplified(convolution("1,3,5,6", "4,3,1,1", "1,4,5,6",
                                   "window={size=1x1}, dim_labels=bf01_oi01->bf01"),
                       "convolution_to_dot,algebraic", true),
            "reshape[1,4,5,6](dot[4,1,5,6]{b/ c1/1}(reshape[4,3](p1), p0))");
}

TEST(ConvolutionToDot, PointwiseOfSeveralImages) {
  EXPECT_EQ(simplified(convolution("2,3,5,6", "4,3,1,1", "2,4,5,6",
                                   "window={size=1x1}, dim_labels=bf01_oi01->bf01"),
                       "convolution_to_dot,algebraic", true),
            "transpose[2,4,5,6]{1,0,2,3}(dot[4,2,5,6]{b/ c1/1}(reshape[4,3](p1), p0))");
}

TEST(ConvolutionToDot, Patches) {
  EXPECT_EQ(simplified(convolution("2,3,8,6", "4,3,4,2", "2,4,2,3",
                                   "window={size=4x2 stride=4x2}, dim_labels=bf01_oi01->bf01"),
                       "convolution_to_dot", true),
            "transpose[2,4,2,3]{0,3,1,2}(dot[2,2,3,4]{b/ c3,4,5/1,2,3}(transpose[2,2,3,3,4,2]"
            "{0,2,4,1,3,5}(reshape[2,3,2,4,3,2](p0)), p1))");
  EXPECT_EQ(simplified(convolution("2,8,3", "4,3,5", "2,2,5",
                                   "window={size=4 stride=4}, dim_labels=b0f_0io->b0f"),
                       "convolution_to_dot,algebraic", true),
            "dot[2,2,5]{b/ c2,3/0,1}(reshape[2,2,4,3](p0), p1)");
}

TEST(ConvolutionToDot, OthersStay) {
  const char* const kLabels = ", dim_labels=b01f_01io->b01f";
  struct {
    const char *input, *kernel, *output, *attrs;
  } const kCases[] = {
      {"2,5,6,3", "3,3,3,4", "2,3,4,4", "window={size=3x3}"},
      {"2,5,6,3", "1,1,3,4", "2,3,3,4", "window={size=1x1 stride=2x2}"},
      {"2,4,4,3", "2,2,3,4", "2,3,3,4", "window={size=2x2 stride=2x2 pad=1_1x1_1}"},
      {"2,5,4,3", "2,2,3,4", "2,2,2,4", "window={size=2x2 stride=2x2}"},
      {"2,5,6,4", "1,1,2,4", "2,5,6,4", "window={size=1x1}, feature_group_count=2"},
      {"2,4,4,3", "2,2,3,4", "2,2,2,4", "window={size=2x2 stride=2x2 rhs_reversal=1x1}"},
  };
  for (const auto& c : kCases)
    expect_unchanged(convolution(c.input, c.kernel, c.output, std::string(c.attrs) + kLabels),
                     "convolution_to_dot");
}

std::string dot(std::string_view lhs, std::string_view rhs, std::string_view attrs) {
  return fmt::format(
      "x = f32[{}] parameter(0) y = f32[{}] parameter(1)\n"
      "ROOT r = dot(x, y), {}",
      lhs, rhs, attrs);
}

TEST(CanonicalizeDot, MergesDimensions) {
  EXPECT_EQ(simplified(dot("2,3,4", "4,5", "lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
                       "canonicalize_dot", true),
            "reshape[2,3,5](dot[6,5]{b/ c1/0}(reshape[6,4](p0), p1))");
  EXPECT_EQ(simplified(dot("2,3,4,5", "2,3,5,6",
                           "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
                           "lhs_contracting_dims={3}, rhs_contracting_dims={2}"),
                       "canonicalize_dot", true),
            "reshape[2,3,4,6](dot[6,4,6]{b0/0 c2/1}(reshape[6,4,5](p0), reshape[6,5,6](p1)))");
  EXPECT_EQ(
      simplified(dot("2,3,4", "3,4,5", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"),
                 "canonicalize_dot", true),
      "dot[2,5]{b/ c1/0}(reshape[2,12](p0), reshape[12,5](p1))");
}

TEST(CanonicalizeDot, WhatDoesNotAdjoinStaysApart) {
  // The contracting dimensions are in different orders.
  expect_unchanged(dot("2,3,4", "4,3,5", "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}"),
                   "canonicalize_dot");
  // A batch dimension between.
  expect_unchanged(dot("2,3,4,5", "2,5,4,6",
                       "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, "
                       "rhs_contracting_dims={1}"),
                   "canonicalize_dot");
}

TEST(CanonicalizeDot, RowsAndColumnsAreMatrices) {
  EXPECT_EQ(simplified(dot("4", "4,5", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
                       "canonicalize_dot", true),
            "reshape[5](dot[1,5]{b/ c1/0}(reshape[1,4](p0), p1))");
  EXPECT_EQ(simplified(dot("4", "4", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
                       "canonicalize_dot", true),
            "reshape[](dot[1,1]{b/ c1/0}(reshape[1,4](p0), reshape[4,1](p1)))");
  EXPECT_EQ(simplified(dot("1,3,1,4", "1,4,5",
                           "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, "
                           "rhs_contracting_dims={1}"),
                       "canonicalize_dot", true),
            "reshape[1,3,1,5](dot[3,5]{b/ c1/0}(reshape[3,4](p0), reshape[4,5](p1)))");
}

TEST(CanonicalizeDot, OneProductEachIsAMultiplication) {
  EXPECT_EQ(simplified(dot("3,1", "1,5", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
                       "canonicalize_dot", true),
            "multiply(broadcast[3,5]{0}(reshape[3](p0)), broadcast[3,5]{1}(reshape[5](p1)))");
  EXPECT_EQ(simplified(dot("3,2", "2,5", "lhs_batch_dims={1}, rhs_batch_dims={0}"),
                       "canonicalize_dot", true),
            "multiply(broadcast[2,3,5]{1,0}(p0), broadcast[2,3,5]{0,2}(p1))");
}

#define ATTENTION(order)                                                                   \
  "q = f32[2,5,3,4] parameter(0) k = f32[2,6,3,4] parameter(1)\n"                          \
  "a = transpose(q), dimensions={0,2,1,3} b = transpose(k), dimensions={0,2,3,1}\n"        \
  "c = f32[6,5,4] reshape(a) d = f32[6,4,6] reshape(b)\n"                                  \
  "ROOT r = dot(c, d), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, " \
  "rhs_contracting_dims={1}"

TEST(CanonicalizeDot, AbsorbsTransposesAlsoUnderReshapes) {
  EXPECT_EQ(simplified("x = f32[4,3] parameter(0) y = f32[4,5] parameter(1)\n"
                       "t = transpose(x), dimensions={1,0}\n"
                       "ROOT r = dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                       "canonicalize_dot", true),
            "dot[3,5]{b/ c0/0}(p0, p1)");
  EXPECT_EQ(simplified(ATTENTION(), "canonicalize_dot", true),
            "reshape[6,5,6](dot[2,3,5,6]{b0,2/0,2 c3/3}(p0, p1))");
}

TEST(CanonicalizeDot, DoesNotTearDimensionsApart) {
  // Reading through the transpose would leave two contracting dimensions.
  const std::string text =
      "x = f32[2,3,5,4] parameter(0) w = f32[12,7] parameter(1)\n"
      "t = transpose(x), dimensions={0,2,1,3} m = f32[10,12] reshape(t)\n"
      "ROOT r = dot(m, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  expect_unchanged(text, "canonicalize_dot");
  // Free dimensions out of order.
  EXPECT_EQ(simplified("x = f32[2,3,4] parameter(0) y = f32[4,5] parameter(1)\n"
                       "t = transpose(x), dimensions={1,0,2}\n"
                       "ROOT r = dot(t, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}",
                       "canonicalize_dot", true),
            "reshape[3,2,5](dot[6,5]{b/ c1/0}(reshape[6,4](transpose[3,2,4]{1,0,2}(p0)), p1))");
}

TEST(CanonicalizeDot, ATransposedResultIsASwap) {
  EXPECT_EQ(simplified("x = f32[3,4] parameter(0) y = f32[4,5] parameter(1)\n"
                       "d = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                       "ROOT r = transpose(d), dimensions={1,0}",
                       "canonicalize_dot", true),
            "dot[5,3]{b/ c0/1}(p1, p0)");
  // The transpose's operand also has another reader.
  expect_unchanged(
      "x = f32[3,4] parameter(0) y = f32[4,5] parameter(1)\n"
      "d = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "t = transpose(d), dimensions={1,0} ROOT r = tuple(d, t)",
      "canonicalize_dot");
}

TEST(CanonicalizeDot, TypesOfProductsStay) {
  EXPECT_THAT(simplified("x = s8[2,3,4] parameter(0) y = s8[4,5] parameter(1)\n"
                         "ROOT r = s32[2,3,5] dot(x, y), lhs_contracting_dims={2}, "
                         "rhs_contracting_dims={0}",
                         "canonicalize_dot"),
              HasSubstr("dot[6,5]"));
  EXPECT_EQ(simplified("x = s8[3,1] parameter(0) y = s8[1,5] parameter(1)\n"
                       "ROOT r = s32[3,5] dot(x, y), lhs_contracting_dims={1}, "
                       "rhs_contracting_dims={0}",
                       "canonicalize_dot"),
            "multiply(broadcast[3,5]{0}(convert.s32(reshape[3](p0))), "
            "broadcast[3,5]{1}(convert.s32(reshape[5](p1))))");
}

#define WEIGHTS "w = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\n"
#define PRODUCT                         \
  "x = f32[4,2] parameter(0)\n" WEIGHTS \
  "d = dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
#define CHANNELS(name, values)                                                 \
  name "0 = f32[3] constant({" values "}) " name " = f32[4,3] broadcast(" name \
       "0), dimensions={1}\n"

TEST(FoldScale, IntoADotsWeights) {
  EXPECT_EQ(simplified(PRODUCT CHANNELS("a", "1, 3, 5") "ROOT r = multiply(d, a)",
                       "fold_scale_into_weights,{fold_constants,dce}*", true),
            "dot[4,3]{b/ c1/0}(p0, constant[2,3])");
  // (d - m) * a + b, the result of batch normalisation.
  EXPECT_EQ(
      simplified(PRODUCT CHANNELS("m", "1, 2, 3") CHANNELS("a", "1, 3, 5") CHANNELS(
                     "b", "7, 8, 9") "s = subtract(d, m) t = multiply(s, a) ROOT r = add(t, b)",
                 "fold_scale_into_weights,{fold_constants,dce}*", true),
      "add(add(dot[4,3]{b/ c1/0}(p0, constant[2,3]), broadcast[4,3]{1}(constant[3])), "
      "broadcast[4,3]{1}(constant[3]))");
}

TEST(FoldScale, IntoAConvolutionsWeights) {
  EXPECT_EQ(simplified("x = f32[1,2,4,4] parameter(0)\n"
                       "k = f32[3,2,1,1] constant({{{{1}},{{2}}}, {{{3}},{{4}}}, {{{5}},{{6}}}})\n"
                       "c = f32[1,3,4,4] convolution(x, k), window={size=1x1}, "
                       "dim_labels=bf01_oi01->bf01\n"
                       "n = f32[] constant(0.5) h = f32[1,3,4,4] broadcast(n), dimensions={}\n"
                       "ROOT r = multiply(h, c)",
                       "fold_scale_into_weights,{fold_constants,algebraic,dce}*", true),
            "convolution(p0, constant[3,2,1,1])");
}

TEST(FoldScale, OthersStay) {
  // Not constant; along the rows; weights with other readers; a result with other readers.
  expect_unchanged(PRODUCT "a = f32[4,3] parameter(1) ROOT r = multiply(d, a)",
                   "fold_scale_into_weights");
  expect_unchanged(PRODUCT
                   "a0 = f32[4] constant({1, 2, 3, 4}) a = f32[4,3] broadcast(a0), "
                   "dimensions={0} ROOT r = multiply(d, a)",
                   "fold_scale_into_weights");
  expect_unchanged(PRODUCT CHANNELS("a", "1, 3, 5") "m = multiply(d, a) ROOT r = tuple(m, w)",
                   "fold_scale_into_weights");
  expect_unchanged(PRODUCT CHANNELS("a", "1, 3, 5") "m = multiply(d, a) ROOT r = tuple(m, d)",
                   "fold_scale_into_weights");
  expect_unchanged(PRODUCT CHANNELS("a", "1, 3, 5") "ROOT r = add(d, a)",
                   "fold_scale_into_weights");
}

TEST(FoldScale, IsNamedInTheNotes) {
  auto module = parse(PRODUCT CHANNELS("a", "1, 3, 5") "ROOT r = multiply(d, a)");
  const pass::RunReport report = run(*module, "fold_scale_into_weights");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("rounding differs"));
}

}  // namespace
}  // namespace heddle::opt
