#include "stage/evaluations.h"

#include <gtest/gtest.h>

namespace heddle::stage {
namespace {

using index::Expr;
using index::Interval;

const std::vector<int64_t> kTrips = {3, 5, 7};  // of variables 0, 1, 2

TEST(Evaluations, WithoutATailAreAll) {
  EXPECT_EQ(evaluations({{Expr::digit(0) * 4, 4}}, {12}, {0}, kTrips), 12);
  EXPECT_EQ(evaluations({{Expr::digit(0) * 4, 4}}, {12}, {0, 1}, kTrips), 60);
  EXPECT_EQ(evaluations({{0, 12}}, {12}, {0}, kTrips), 36);
}

TEST(Evaluations, TheLastStripStopsAtTheEnd) {
  EXPECT_EQ(evaluations({{Expr::digit(0) * 4096, 4096}}, {8193}, {0}, kTrips), 8193);
  // Strips beyond it do nothing.
  EXPECT_EQ(evaluations({{Expr::digit(1) * 4, 4}}, {9}, {1}, kTrips), 9);
  // Tiles of strips, 7 of 2 each.
  EXPECT_EQ(evaluations({{Expr::digit(0) * 14 + Expr::digit(2) * 2, 2}}, {31}, {0, 2}, kTrips), 31);
}

TEST(Evaluations, WindowsOverlap) {
  EXPECT_EQ(evaluations({{Expr::digit(0) * 4, 6}}, {14}, {0}, kTrips), 18);
  EXPECT_EQ(evaluations({{Expr::digit(0) * 4, 6}}, {13}, {0}, kTrips), 17);
}

TEST(Evaluations, ByAllPoints) {
  // Each digit is moved by different loops; the other loops repeat it.
  for (const int64_t end : {1, 5, 20, 29, 34, 35, 60})
    for (const int64_t factor : {1, 2, 5, 8}) {
      double expected = 0;
      for (int64_t i = 0; i < 5; ++i)
        for (int64_t j = 0; j < 7; ++j) {
          const int64_t at = 1 + i * factor + j * 3;
          expected += static_cast<double>(std::clamp<int64_t>(end - at, 0, 4));
        }
      const Interval interval{Expr::digit(1) * factor + Expr::digit(2) * 3 + 1, 4};
      EXPECT_EQ(evaluations({interval, {0, 2}}, {end, 2}, {0, 1, 2}, kTrips), expected * 2 * 3)
          << end << " " << factor;
    }
}

TEST(Evaluations, ALoopThatMovesTwoDigitsCountsOnce) {
  const Interval interval{Expr::digit(0) * 4, 4};
  EXPECT_EQ(evaluations({interval, interval}, {9, 12}, {0}, kTrips), 9 * 4);
}

}  // namespace
}  // namespace heddle::stage
