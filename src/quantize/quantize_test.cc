#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quantize/adjust.h"

namespace heddle::quantize {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

std::vector<float> normal(size_t count, uint64_t seed, float scale = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw(0, scale);
  std::vector<float> values(count);
  for (float& x : values) x = draw(random);
  return values;
}

TEST(Histogram, GrowsWithoutLosingCounts) {
  Histogram histogram;
  int64_t count = 0;
  for (float scale : {1e-3F, 1.0F, 0.5F, 700.0F, 1e20F}) {
    const auto values = normal(1000, 7, scale);
    histogram.add(values);
    count += 1000;
  }
  EXPECT_EQ(histogram.count(), count);
  Histogram read;
  ASSERT_TRUE(Histogram::load(histogram.save(), &read));
  EXPECT_EQ(read.save(), histogram.save());
  EXPECT_FALSE(Histogram::load("1 2 x", &read));
}

TEST(Histogram, IsTheSameInAnyOrderOfBatches) {
  const auto small = normal(5000, 1, 0.1F), large = normal(5000, 2, 30);
  Histogram a, b;
  a.add(small);
  a.add(large);
  b.add(large);
  b.add(small);
  for (Method method : {Method::minmax, Method::percentile, Method::mse, Method::kl})
    EXPECT_NEAR(a.range(method, true).high, b.range(method, true).high, 0.1) << int(method);
}

TEST(Histogram, CountsWhatIsNotFiniteApart) {
  Histogram histogram;
  const float inf = std::numeric_limits<float>::infinity();
  histogram.add(std::vector<float>{1, -2, inf, -inf, std::nanf(""), 0});
  EXPECT_EQ(histogram.count(), 3);
  EXPECT_EQ(histogram.unusable(), 3);
  EXPECT_EQ(histogram.range(Method::minmax, false).low, -2);
}

TEST(Histogram, OutliersAreCutByAllButMinmax) {
  Histogram histogram;
  histogram.add(normal(200000, 3));
  histogram.add(std::vector<float>{60});
  EXPECT_EQ(histogram.range(Method::minmax, true).high, 60);
  for (Method method : {Method::percentile, Method::mse, Method::kl}) {
    const Range range = histogram.range(method, true);
    // For the squared error, one value at 60 justifies doubling the step.
    EXPECT_LT(range.high, method == Method::mse ? 40 : 12) << int(method);
    EXPECT_GT(range.high, 2.5) << int(method);
    EXPECT_EQ(range.low, -range.high);
  }
  const Range best = histogram.range(Method::mse, true);
  EXPECT_LT(histogram.error(best), histogram.error({-60, 60}));
}

TEST(Histogram, WithoutNegativeValuesNoneAreCovered) {
  Histogram histogram;
  auto values = normal(10000, 4);
  for (float& x : values) x = std::max(x, 0.0F);
  histogram.add(values);
  EXPECT_EQ(histogram.range(Method::mse, true).low, 0);
  const Params params = params_of(histogram.range(Method::mse, true), true);
  EXPECT_FALSE(params.is_signed);
  EXPECT_EQ(params.zero, 0);
}

TEST(Params, ZeroIsExactAndNothingOverflows) {
  const Params u8 = params_of({-1, 3}, false);
  EXPECT_EQ(u8.zero, 64);
  EXPECT_FLOAT_EQ(u8.scale, 4.0F / 255);
  const Params s8 = params_of({-2, 2}, true);
  EXPECT_TRUE(s8.is_signed);
  EXPECT_FLOAT_EQ(s8.scale, 2.0F / 127);
  EXPECT_EQ(params_of({0, 0}, true).scale, 1);
  EXPECT_GT(params_of({-1e-44, 1e-44}, true).scale, 0);
  EXPECT_TRUE(std::isfinite(params_of({-1e38, 1e38}, false).scale));
}

TEST(Weights, LoseWhatGaussianNumbersMust) {
  const auto values = normal(64 * 512, 5);
  const Literal x = Literal::from<float>(Shape::array(Type::f32, {64, 512}), values);
  const Weights rows = quantize_weights(x, 0);
  EXPECT_GT(rows.sqnr, 38);  // the ceiling of 8 bits over the whole range is 39 to 43 dB
  EXPECT_LT(rows.sqnr, 45);
  const Blocks blocks = quantize_blocks(x, 0, 32);
  EXPECT_GT(blocks.sqnr, 18);  // of 4 bits: 14.5 over a whole row, 18.8 at the best clipping
  EXPECT_LT(blocks.sqnr, 24);
  const Literal back = dequantized(rows, 0);
  double worst = 0;
  for (int64_t i = 0; i < x.elems(); ++i)
    worst =
        std::max(worst, std::abs(back.get_f64(i) - x.get_f64(i)) / rows.scales.get_f64(i / 512));
  EXPECT_LE(worst, 0.5001);
}

TEST(Weights, ChannelsOfZerosAndOddNumbersAreExact) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values{0, 0, 0, 0, 1e-38F, -1e-38F, 5, -5, inf, 1, 2, 3};
  const Weights made =
      quantize_weights(Literal::from<float>(Shape::array(Type::f32, {3, 4}), values), 0);
  EXPECT_EQ(made.scales.get_f64(0), 1);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(made.numbers.get_s64(i), 0);
  EXPECT_EQ(made.numbers.get_s64(8), 127);  // infinity: the largest
}

TEST(Blocks, HoldTheLargestElementExactly) {
  std::vector<float> values(64, 0.25F);
  values[10] = -2;
  const Blocks made =
      quantize_blocks(Literal::from<float>(Shape::array(Type::f32, {64, 1}), values), 1, 32);
  EXPECT_EQ(made.numbers.shape().extents(), (std::vector<int64_t>{1, 2, 16}));
  EXPECT_FLOAT_EQ(static_cast<float>(made.scales.get_f64(0)), 0.25F);
  EXPECT_EQ(made.numbers.get_s64(5) & 15, 0);  // -8
  EXPECT_EQ(made.numbers.get_s64(5) >> 4, 9);
  const Blocks turned =
      quantize_blocks(Literal::from<float>(Shape::array(Type::f32, {1, 64}), values), 0, 32);
  EXPECT_TRUE(turned.numbers == made.numbers && turned.scales == made.scales);
}

}  // namespace
}  // namespace heddle::quantize
