#include "api/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hlo/text.h"

namespace heddle::api {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Tolerance;
using tensor::Type;

std::vector<Tolerance> derive(const std::string& body) {
  auto module = hlo::parse_module(R"(HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
ENTRY e {
)" + body + "}");
  EXPECT_TRUE(module) << module.error().message;
  return derive_tolerances(**module);
}

constexpr double kUnit = 0x1p-24;

TEST(tolerance, ExactOperatorsAllowAFewRoundings) {
  const auto t = derive("x = f32[9] parameter(0)\n ROOT y = f32[9] negate(x)\n");
  EXPECT_EQ(t.at(0).relative, 4 * kUnit);
  EXPECT_EQ(t.at(0).relative_to_max, 0);
  const auto integers = derive("x = s32[9] parameter(0)\n ROOT y = s32[9] add(x, x)\n");
  EXPECT_EQ(integers.at(0).relative, 0);
  EXPECT_EQ(integers.at(0).absolute, 0);
}

TEST(tolerance, GrowsWithTheRootOfTheReductionLength) {
  const auto dot = [](int64_t k) {
    return derive(
               fmt::format("a = f32[2,{0}] parameter(0)\n b = f32[{0},3] parameter(1)\n ROOT y = "
                           "f32[2,3] dot(a, b), lhs_contracting_dims={{1}}, "
                           "rhs_contracting_dims={{0}}\n",
                           k))
        .at(0)
        .relative_to_max;
  };
  EXPECT_NEAR(dot(101) / kUnit, 80, 1e-6);
  EXPECT_NEAR(dot(401) / dot(101), 2, 1e-6);
  // A whole encoder stays below what users are promised.
  EXPECT_LT(dot(12 * 10000), 3e-4);
}

TEST(tolerance, MaximumAddsNothing) {
  const std::string text =
      "x = f32[64,64] parameter(0)\n z = f32[] constant(0)\n ROOT y = f32[64] "
      "reduce(x, z), dimensions={1}, to_apply=";
  EXPECT_EQ(derive(text + "max\n").at(0).relative_to_max, 0);
  EXPECT_GT(derive(text + "sum\n").at(0).relative_to_max, 0);
}

TEST(tolerance, LeavesHaveTheirOwn) {
  const auto t = derive(
      "x = f32[9] parameter(0)\n e = f32[9] exponential(x)\n i = s32[] constant(1)\n"
      " p = (f32[9], s32[]) tuple(e, i)\n ROOT y = ((f32[9], s32[]), f32[9]) "
      "tuple(p, x)\n");
  ASSERT_EQ(t.size(), 3u);
  EXPECT_GT(t[0].relative, t[2].relative);
  EXPECT_EQ(t[1].relative, 0);
}

TEST(tolerance, NarrowTypesOnTheWayCount) {
  const auto t = derive(
      "x = f32[9] parameter(0)\n h = bf16[9] convert(x)\n"
      " ROOT y = f32[9] convert(h)\n");
  EXPECT_GT(t.at(0).relative, 0x1p-9);
}

TEST(tolerance, MeasuredWidensByWhatTheReferenceLost) {
  const Shape shape = Shape::array(Type::f32, {3});
  const Literal wide = Literal::from<float>(shape, std::vector<float>{1, 100, 0});
  const Literal plain = Literal::from<float>(shape, std::vector<float>{1.25f, 100, 0});
  const Tolerance same = measured_tolerance({1e-6, 0, 0}, wide, std::vector{wide});
  EXPECT_EQ(same.relative, 1e-6);
  const Tolerance wider = measured_tolerance({1e-6, 0, 0}, plain, std::vector{wide});
  EXPECT_NEAR(wider.relative, 8 * 0.25 + 1e-6, 1e-9);
  EXPECT_NEAR(wider.relative_to_max, 8 * 0.25 / 1024, 1e-9);
  EXPECT_EQ(wider.absolute, 0);
  // An element that changes by more than the scale has no relative error: it adds to the absolute
  // tolerance.
  const Literal moved = Literal::from<float>(shape, std::vector<float>{1, 100, 0.5f});
  const Tolerance apart = measured_tolerance({1e-6, 0, 0}, wide, std::vector{moved});
  EXPECT_NEAR(apart.absolute, 8 * 0.5, 1e-9);
  EXPECT_EQ(apart.relative, 1e-6);
}

}  // namespace
}  // namespace heddle::api
