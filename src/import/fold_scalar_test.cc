// Folding at import gives the same results as kernels, also where C++ would differ or is undefined.
#include "import/fold_scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace heddle::import {
namespace {

using hlo::Opcode;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(FoldScalar, HalvesGoToTheEvenNumber) {
  const auto rounded = [](double x) { return fold_unary(Opcode::round_nearest_even, x); };
  EXPECT_EQ(rounded(0.5), 0);
  EXPECT_EQ(rounded(1.5), 2);
  EXPECT_EQ(rounded(2.5), 2);
  EXPECT_EQ(rounded(-2.5), -2);
  EXPECT_EQ(rounded(-3.5), -4);
  EXPECT_EQ(rounded(2.4), 2);
}

TEST(FoldScalar, DividingByZeroAndTheLeastByMinusOne) {
  EXPECT_EQ(fold_binary(Opcode::divide, int64_t{7}, int64_t{0}), -1);
  EXPECT_EQ(fold_binary(Opcode::remainder, int64_t{7}, int64_t{0}), 7);
  EXPECT_EQ(fold_binary(Opcode::divide, kLeast, int64_t{-1}), kLeast);
  EXPECT_EQ(fold_binary(Opcode::remainder, kLeast, int64_t{-1}), 0);
  EXPECT_EQ(fold_binary(Opcode::divide, int64_t{-7}, int64_t{2}), -3);
  EXPECT_EQ(fold_binary(Opcode::remainder, int64_t{-7}, int64_t{2}), -1);
}

TEST(FoldScalar, IntegersWrapAround) {
  EXPECT_EQ(fold_binary(Opcode::add, kMost, int64_t{1}), kLeast);
  EXPECT_EQ(fold_binary(Opcode::subtract, kLeast, int64_t{1}), kMost);
  EXPECT_EQ(fold_binary(Opcode::multiply, kMost, int64_t{2}), -2);
  EXPECT_EQ(fold_unary(Opcode::negate, kLeast, false), kLeast);
  EXPECT_EQ(fold_unary(Opcode::abs, kLeast, false), kLeast);
  EXPECT_EQ(fold_binary(Opcode::power, int64_t{3}, int64_t{5}), 243);
  EXPECT_EQ(fold_binary(Opcode::power, int64_t{2}, int64_t{64}), 0);
  EXPECT_EQ(fold_binary(Opcode::power, int64_t{2}, int64_t{-1}), std::nullopt);
}

TEST(FoldScalar, NotOfATruthAndOfANumber) {
  EXPECT_EQ(fold_unary(Opcode::not_, int64_t{1}, true), 0);
  EXPECT_EQ(fold_unary(Opcode::not_, int64_t{0}, true), 1);
  EXPECT_EQ(fold_unary(Opcode::not_, int64_t{1}, false), -2);
}

TEST(FoldScalar, ANanIsTheLargestAndTheSmallest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Opcode opcode : {Opcode::maximum, Opcode::minimum}) {
    EXPECT_TRUE(std::isnan(*fold_binary(opcode, nan, 1.0)));
    EXPECT_TRUE(std::isnan(*fold_binary(opcode, 1.0, nan)));
  }
  EXPECT_EQ(fold_binary(Opcode::maximum, 1.0, 2.0), 2);
  EXPECT_EQ(fold_binary(Opcode::minimum, 1.0, 2.0), 1);
  EXPECT_TRUE(std::isnan(*fold_unary(Opcode::sign, nan)));
}

}  // namespace
}  // namespace heddle::import
