#include "quantize/gptq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace heddle::quantize {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

// Sums of x xᵀ over rows that are mixtures of a few common rows and a little independent noise.
std::vector<float> correlated(int64_t k, int64_t rows, int64_t sources, float own) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> draw;
  std::vector<float> mixture(static_cast<size_t>(sources * k)),
      source(static_cast<size_t>(sources)), x(static_cast<size_t>(k)),
      gram(static_cast<size_t>(k * k), 0);
  for (float& value : mixture) value = draw(random);
  for (int64_t row = 0; row < rows; ++row) {
    for (float& value : source) value = draw(random);
    for (size_t j = 0; j < x.size(); ++j) {
      x[j] = own * draw(random);
      for (size_t s = 0; s < source.size(); ++s) x[j] += source[s] * mixture[s * x.size() + j];
    }
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < x.size(); ++j) gram[i * x.size() + j] += x[i] * x[j];
  }
  return gram;
}

Literal weights(int64_t k, int64_t n) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> draw;
  std::vector<float> values(static_cast<size_t>(k * n));
  for (float& value : values) value = draw(random);
  return Literal::from<float>(Shape::array(Type::f32, {k, n}), values);
}

// tr(D G Dᵀ) by its definition.
double error_of(const Blocks& blocks, const Literal& weights, int64_t size,
                const std::vector<float>& gram) {
  const int64_t k = weights.shape().dim(0), n = weights.shape().dim(1);
  const int64_t count = (k + size - 1) / size;
  double sum = 0;
  for (int64_t column = 0; column < n; ++column) {
    std::vector<double> d;
    for (int64_t row = 0; row < k; ++row) {
      const int64_t place = column * count * size + row;
      const auto byte = static_cast<unsigned>(blocks.numbers.get_s64(place / 2));
      const auto number = static_cast<int>(place % 2 == 0 ? byte & 15U : byte >> 4U);
      d.push_back((number - 8) * blocks.scales.get_f64(column * count + row / size) -
                  weights.get_f64(row * n + column));
    }
    for (size_t i = 0; i < d.size(); ++i)
      for (size_t j = 0; j < d.size(); ++j) sum += d[i] * d[j] * gram[i * d.size() + j];
  }
  return sum;
}

TEST(Gptq, LosesMuchLessWhereInputsAreCorrelated) {
  for (const auto& [k, size] :
       {std::pair<int64_t, int64_t>{96, 32}, {200, 32}, {320, 256}, {40, 64}}) {
    const Literal w = weights(k, 24);
    const std::vector<float> gram = correlated(k, 500, 8, 0.1F);
    const auto factor = GramFactor::of(gram, k, 1e5);
    ASSERT_TRUE(factor);
    const Gptq made = gptq_blocks(w, 1, size, *factor);
    const double plain = error_of(quantize_blocks(w, 1, size), w, size, gram);
    EXPECT_NEAR(made.plain_error / plain, 1, 1e-3) << k;
    EXPECT_NEAR(made.error / error_of(made.blocks, w, size, gram), 1, 1e-3) << k;
    EXPECT_LT(made.error, 0.35 * plain) << k;
    EXPECT_LT(made.blocks.sqnr, quantize_blocks(w, 1, size).sqnr);  // but not of the weights alone
  }
}

TEST(Gptq, IsPlainWhereInputsHaveNothingInCommon) {
  const Literal w = weights(64, 8);
  std::vector<float> gram(64 * 64, 0);
  for (size_t i = 0; i < 64; ++i) gram[i * 65] = 3;
  const Gptq made = gptq_blocks(w, 1, 32, *GramFactor::of(gram, 64, 1e4));
  const Blocks plain = quantize_blocks(w, 1, 32);
  EXPECT_TRUE(made.blocks.numbers == plain.numbers && made.blocks.scales == plain.scales);
  EXPECT_EQ(made.blocks.sqnr, plain.sqnr);
}

TEST(Gptq, TrustsFewRowsLess) {
  const Literal w = weights(96, 24);
  const std::vector<float> gram = correlated(96, 40, 96, 0), other = correlated(96, 4000, 96, 0);
  const double plain = error_of(quantize_blocks(w, 1, 32), w, 32, other);
  const auto error = [&](double rows) {  // for other rows with the same distribution
    return error_of(gptq_blocks(w, 1, 32, *GramFactor::of(gram, 96, rows)).blocks, w, 32, other);
  };
  EXPECT_LT(error(40), error(1e9));
  EXPECT_LT(error(40), 1.05 * plain);
}

TEST(Gptq, OddSumsHaveNoFactor) {
  std::vector<float> gram(32 * 32, 0);
  EXPECT_FALSE(GramFactor::of(gram, 32, 1e4));  // no inputs
  EXPECT_FALSE(GramFactor::of(gram, 31, 1e4));
  gram[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(GramFactor::of(gram, 32, 1e4));
  gram[0] = 1;  // one channel only: the others are dead
  EXPECT_TRUE(GramFactor::of(gram, 32, 1e4));
}

}  // namespace
}  // namespace heddle::quantize
