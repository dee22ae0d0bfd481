// Exhaustive checks: simplified expressions against their meaning at every point, images and hulls
// against the points that they must cover.
#include <gtest/gtest.h>

#include <random>

#include "index/map.h"

namespace heddle::index {
namespace {

using Extents = std::vector<int64_t>;

template <typename Function>
void each_point(const Extents& extents, Function&& function) {
  std::vector<int64_t> point(extents.size(), 0);
  while (true) {
    function(point);
    size_t d = extents.size();
    while (d > 0 && ++point[d - 1] == extents[d - 1]) point[--d] = 0;
    if (d == 0) return;
  }
}

int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

TEST(ExprTest, CanonicalFormMakesEqualSumsEqual) {
  Expr a = Expr::digit(0) * 64 + Expr::digit(1) + Expr(3);
  Expr b = Expr(3) + Expr::digit(1) + Expr::digit(0) * 60 + Expr::digit(0) * 4;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a - b, Expr(0));
  EXPECT_EQ(to_string(a), "d0*64 + d1 + 3");
}

TEST(ExprTest, QuotientsAndRemaindersSimplify) {
  Extents box{12, 64};
  Expr x = Expr::digit(0) * 64 + Expr::digit(1);
  EXPECT_EQ(floor_div(x, 64, box), Expr::digit(0));
  EXPECT_EQ(mod(x, 64, box), Expr::digit(1));
  EXPECT_EQ(to_string(floor_div(x, 128, box)), "((d0) floordiv 2)");
  // 48·p + 16·v + l by 64: the lane cannot carry.
  Extents tile{4, 3, 16};
  Expr n = Expr::digit(0) * 48 + Expr::digit(1) * 16 + Expr::digit(2);
  EXPECT_EQ(to_string(floor_div(n, 64, tile)), "((d0*3 + d1) floordiv 4)");
  EXPECT_EQ(to_string(mod(n, 64, tile)), "d2 + ((d0*3 + d1) mod 4)*16");
}

TEST(ExprTest, QuotientAndRemainderJoinAgain) {
  Extents box{100};
  Expr d = Expr::digit(0);
  EXPECT_EQ(floor_div(d, 7, box) * 21 + mod(d, 7, box) * 3 + Expr(1), d * 3 + Expr(1));
}

// A digit that was split twice and joined again: the columns of a panel.
TEST(ExprTest, RemaindersJoinToLargerOnes) {
  Extents box{128};
  Expr d = Expr::digit(0);
  const Expr high = mod(floor_div(d, 4, box), 4, box);
  EXPECT_EQ(high * 4 + mod(d, 4, box), mod(d, 16, box));
  EXPECT_EQ(high * 12 + mod(d, 4, box) * 3 + floor_div(d, 16, box) * 48, d * 3);
  EXPECT_EQ(to_string(high * 4 + mod(d, 8, box)), to_string(mod(d, 8, box) + high * 4));
}

TEST(ExprTest, RandomExpressionsKeepTheirValueAndBounds) {
  std::mt19937 random(5);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    Extents box{pick(1, 4), pick(1, 5), pick(1, 6)};
    Expr x(pick(-9, 9));
    for (int d = 0; d < 3; ++d) x = x + Expr::digit(d) * pick(-7, 12);
    int64_t k1 = pick(1, 12), k2 = pick(1, 6);
    Expr q = floor_div(x, k1, box), r = mod(x, k1, box);
    Expr deep = mod(floor_div(q + r * 3, k2, box) + x, k1 + 1, box);
    Range range = bounds(deep, box);
    each_point(box, [&](const std::vector<int64_t>& at) {
      int64_t value = evaluate(x, at);
      ASSERT_EQ(evaluate(q, at), floor_of(value, k1)) << to_string(x) << " by " << k1;
      ASSERT_EQ(evaluate(r, at), value - floor_of(value, k1) * k1);
      int64_t inner = floor_of(evaluate(q, at) + 3 * evaluate(r, at), k2) + value;
      int64_t want = inner - floor_of(inner, k1 + 1) * (k1 + 1);
      ASSERT_EQ(evaluate(deep, at), want);
      ASSERT_LE(range.low, want);
      ASSERT_GE(range.high, want);
    });
  }
}

TEST(ExprTest, SubstitutionIsComposition) {
  Extents box{6, 35};
  // d1 = 7·e1 + e2 splits a digit.
  Extents split{6, 5, 7};
  Expr x = mod(Expr::digit(1), 7, box) * 3 + floor_div(Expr::digit(1), 7, box) + Expr::digit(0);
  Expr y = substitute(x, {Expr::digit(0), Expr::digit(1) * 7 + Expr::digit(2)}, split);
  EXPECT_EQ(y, Expr::digit(0) + Expr::digit(1) + Expr::digit(2) * 3);
}

TEST(MapTest, ReshapesAreBijectionsAndCompose) {
  Extents a{4, 6, 5}, b{8, 15}, c{2, 3, 20};
  Map ab = reshape(a, b), bc = reshape(b, c), ac = compose(bc, ab);
  each_point(a, [&](const std::vector<int64_t>& at) {
    int64_t linear = (at[0] * 6 + at[1]) * 5 + at[2];
    EXPECT_EQ(evaluate(ac.results[0], at), linear / 60);
    EXPECT_EQ(evaluate(ac.results[1], at), linear / 20 % 3);
    EXPECT_EQ(evaluate(ac.results[2], at), linear % 20);
  });
  Map there_and_back = compose(reshape(b, a), reshape(a, b));
  each_point(a, [&](const std::vector<int64_t>& at) {
    for (size_t d = 0; d < 3; ++d) EXPECT_EQ(evaluate(there_and_back.results[d], at), at[d]);
  });
}

// Regions with one outer variable of extent n: every point read is inside, for each value.
TEST(MapTest, ImagesCoverWhatIsRead) {
  std::mt19937 random(11);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    Extents domain{pick(2, 8), pick(2, 12)};
    int64_t by = pick(1, domain[0]), n = domain[0] / by;
    if (n == 0) continue;
    Map map{domain, {}};
    Expr sum = Expr::digit(0) * pick(0, 4) + Expr::digit(1) * pick(1, 3) + Expr(pick(0, 2));
    int64_t k = pick(2, 6);
    map.results = {sum, floor_div(sum, k, domain), mod(sum, k, domain)};
    Extents target;
    for (const Expr& result : map.results) target.push_back(bounds(result, domain).high + 1);
    // Digit 0 runs over [by·t, by·t + by), t the outer variable; digit 1 over all.
    Region iterated{{Expr::digit(0) * by, by}, {Expr(0), domain[1]}};
    Region region = image(map, iterated, {n}, target);
    Region swept = sweep(region, 0, n, target);
    for (int64_t t = 0; t < n; ++t) {
      each_point({by, domain[1]}, [&](const std::vector<int64_t>& inner) {
        std::vector<int64_t> at{by * t + inner[0], inner[1]};
        for (size_t d = 0; d < 3; ++d) {
          int64_t value = evaluate(map.results[d], at);
          int64_t offset = evaluate(region[d].offset, {t});
          ASSERT_GE(value, offset);
          ASSERT_LT(value, offset + region[d].extent) << to_string(map.results[d]);
          int64_t whole = evaluate(swept[d].offset, {0});
          ASSERT_GE(value, whole);
          ASSERT_LT(value, whole + swept[d].extent);
        }
      });
    }
  }
}

TEST(MapTest, HullAndContainment) {
  Extents outer{8}, target{64};
  Region a{{Expr::digit(0) * 4, 4}}, b{{Expr::digit(0) * 4 + Expr(2), 4}};
  Region both = hull(a, b, outer, target);
  EXPECT_EQ(both[0], (Interval{Expr::digit(0) * 4, 6}));
  EXPECT_TRUE(static_cast<bool>(contains(both, a, outer)));
  EXPECT_TRUE(static_cast<bool>(contains(both, b, outer)));
  EXPECT_EQ(contains(a, Region{{Expr(16), 4}}, outer).code(), "unknown");
  EXPECT_EQ(contains(Region{{Expr(0), 4}}, Region{{Expr(8), 4}}, outer).code(), "outside");
  // A region that begins inside (certainly or possibly) and ends beyond.
  EXPECT_EQ(contains(Region{{Expr(0), 4}}, Region{{Expr(2), 3}}, outer).code(), "outside");
  EXPECT_EQ(contains(Region{{Expr(0), 8}}, Region{{Expr::digit(0), 2}}, outer).code(), "unknown");
  // Offsets that differ by a variable widen to the whole digit, with a reason.
  std::vector<std::string> widened;
  Region wide = hull(a, Region{{Expr(0), 4}}, outer, target, &widened);
  EXPECT_EQ(wide[0].extent, 64);
  EXPECT_EQ(widened.size(), 1u);
  EXPECT_EQ(volume(both), 6);
}

}  // namespace
}  // namespace heddle::index
