#include "compiler/advise.h"

#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::compiler {
namespace {

AdviceReport advice_for(const std::string& entry) {
  auto module = hlo::parse_module("HloModule m\nENTRY e {\n" + entry + "\n}\n");
  HEDDLE_CHECK(module.has_value(), "{}", module.error().message);
  auto target = target::find_target("spr");
  auto report = advise(std::move(*module), *target, {});
  HEDDLE_CHECK(report.has_value(), "{}", report.error().message);
  return std::move(*report);
}

const Advice* find(const AdviceReport& report, const std::string& kind) {
  for (const Advice& advice : report.advice)
    if (advice.kind == kind) return &advice;
  return nullptr;
}

std::string product(int64_t rows, int64_t columns, int64_t depth, const std::string& behind) {
  return fmt::format(
      "x = f32[{0},{2}] parameter(0)\nw = f32[{2},{1}] constant({{...}})\nd = f32[{0},{1}] dot(x, "
      "w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\nROOT y = f32[{0},{1}] {3}",
      rows, columns, depth, behind);
}

TEST(Advise, ColumnsThatFillNoVector) {
  const AdviceReport odd = advice_for(product(256, 24, 128, "negate(d)"));
  const Advice* advice = find(odd, "alignment");
  ASSERT_NE(advice, nullptr);
  EXPECT_NEAR(advice->gain_ns, odd.product_ns / 4, odd.product_ns / 8);  // 8 of 32 lanes
  EXPECT_EQ(find(advice_for(product(256, 32, 128, "negate(d)")), "alignment"), nullptr);
}

TEST(Advise, ActivationsAgainstRectifiers) {
  const Advice* costly = find(advice_for(product(256, 64, 64, "erf(d)")), "activation");
  ASSERT_NE(costly, nullptr);
  EXPECT_GT(costly->gain_ns, 0);
  EXPECT_EQ(find(advice_for(product(256, 64, 64, "maximum(d, d)")), "activation"), nullptr);
}

TEST(Advise, MemoryBoundProductsHaveRoom) {
  EXPECT_NE(find(advice_for(product(1, 1024, 1024, "negate(d)")), "capacity"), nullptr);
  EXPECT_EQ(find(advice_for(product(512, 1024, 1024, "negate(d)")), "capacity"), nullptr);
}

TEST(Advise, DeepeningIsPriced) {
  const AdviceReport report = advice_for(
      "x = f32[1,28,28,64] parameter(0)\nw = f32[3,3,64,64] constant({...})\n"
      "ROOT c = f32[1,28,28,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, "
      "dim_labels=b01f_01io->b01f");
  const Advice* advice = find(report, "deepening");
  ASSERT_NE(advice, nullptr);
  // A ninth of the 3x3 product, and a little more for its short sums.
  EXPECT_LT(advice->gain_ns, -report.product_ns / 12);
  EXPECT_GT(advice->gain_ns, -report.product_ns / 4);
}

}  // namespace
}  // namespace heddle::compiler
