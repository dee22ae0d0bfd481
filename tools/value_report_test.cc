#include "value_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::tools {
namespace {

api::SeenValue gradient(const std::vector<float>& values) {
  api::SeenValue one{"g dot f32[4]", "w", false, {}};
  one.seen.add(values);
  return one;
}

TEST(ValueReport, ScalesMoveNumbersUp) {
  // 2^-30 is flushed as it is; times 2^5 it is the least that stays, times 2^16 it has all bits.
  const api::SeenValue one = gradient({0x1p-30F, 1, 1, 0});
  EXPECT_DOUBLE_EQ(loss_at(one.seen, 0).flushed, 1.0 / 3);
  EXPECT_DOUBLE_EQ(loss_at(one.seen, 0).small, 0);
  EXPECT_DOUBLE_EQ(loss_at(one.seen, 5).flushed, 0);
  EXPECT_DOUBLE_EQ(loss_at(one.seen, 5).small, 1.0 / 3);
  EXPECT_DOUBLE_EQ(loss_at(one.seen, 16).small, 0);
}

TEST(ValueReport, TheLargestScaleDoesNotOverflow) {
  EXPECT_EQ(most_scale(gradient({1}).seen), 15);
  EXPECT_EQ(most_scale(gradient({65504}).seen), 0);
  EXPECT_EQ(most_scale(gradient({-70000}).seen), -1);
  EXPECT_EQ(most_scale(gradient({0}).seen), std::nullopt);
}

TEST(ValueReport, TheBestScaleIsTheSmallestThatLosesLeast) {
  EXPECT_EQ(best_scale(std::vector{gradient({0x1p-24F, 0.5F})}), 10);
  // It would take 2^20 to save the small one, which the large one does not bear.
  EXPECT_EQ(best_scale(std::vector{gradient({0x1p-40F, 8}), gradient({0x1p-20F})}), 6);
  EXPECT_EQ(best_scale(std::vector{gradient({0x1p-26F, 512})}), 6);
  EXPECT_EQ(best_scale(std::vector{gradient({1, 2})}), -10);
  EXPECT_EQ(best_scale(std::vector{gradient({0x1p-100F})}), -10);
}

TEST(ValueReport, WhatSpansMostStandsFirst) {
  const std::vector values{gradient({1, 2}), gradient({0x1p-20F, 70000})};
  const std::string text = ranges_text(values, 1);
  EXPECT_THAT(text, testing::HasSubstr("overflows"));
  EXPECT_THAT(text, testing::HasSubstr("and 1 more"));
  EXPECT_THAT(text, testing::HasSubstr("f16 holds 1 of 2 values"));
}

}  // namespace
}  // namespace heddle::tools
