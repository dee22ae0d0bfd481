#include "tensor/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace heddle::tensor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const Tolerance kExact;

Literal values(Type type, const std::vector<double>& list) {
  Literal literal(Shape::array(type, {static_cast<int64_t>(list.size())}));
  for (size_t i = 0; i < list.size(); ++i) literal.set_f64(static_cast<int64_t>(i), list[i]);
  return literal;
}

TEST(compare, UlpDistance) {
  EXPECT_EQ(ulp_distance(Type::f32, 1, 1), 0);
  EXPECT_EQ(ulp_distance(Type::f32, 1, 1 + 0x1p-23), 1);
  EXPECT_EQ(ulp_distance(Type::f32, 1, 1 - 0x1p-24), 1);
  EXPECT_EQ(ulp_distance(Type::f32, -0x1p-149, 0x1p-149), 2);
  EXPECT_EQ(ulp_distance(Type::f32, -0.0, 0.0), 0);
  EXPECT_EQ(ulp_distance(Type::f64, 1, std::nextafter(1, 2)), 1);
  EXPECT_EQ(ulp_distance(Type::f32, kNaN, -kNaN), 0);
  EXPECT_EQ(ulp_distance(Type::f32, kNaN, 1), kInf);
  EXPECT_EQ(ulp_distance(Type::f32, 0x1.fffffep127, kInf), 1);
  EXPECT_EQ(ulp_distance(Type::f64, -kInf, kInf), 2 * 0x1p52 * 2047);
  EXPECT_EQ(ulp_distance(Type::f8e8m0fnu, 0.5, 4), 3);
  EXPECT_EQ(ulp_distance(Type::bf16, 256, 258), 1);
}

TEST(compare, ExactComparison) {
  Literal want = values(Type::f32, {1, kNaN, kInf, -kInf, 0});
  Comparison same = compare(want, want, kExact);
  EXPECT_TRUE(same.equal);
  EXPECT_EQ(same.worst_index, -1);
  EXPECT_EQ(same.max_want, 1);
  EXPECT_EQ(same.describe(), "equal");
  EXPECT_TRUE(compare(values(Type::f32, {1, -kNaN, kInf, -kInf, -0.0}), want, kExact).equal);
  Comparison off = compare(values(Type::f32, {1 + 0x1p-23, kNaN, kInf, -kInf, 0}), want, kExact);
  EXPECT_FALSE(off.equal);
  EXPECT_EQ(off.mismatches, 1);
  EXPECT_EQ(off.worst_index, 0);
  EXPECT_EQ(off.worst_ulp, 1);
  EXPECT_EQ(off.worst_error, 0x1p-23);
}

TEST(compare, SpecialValuesAreNeverWithinATolerance) {
  Tolerance wide{.relative = 1, .absolute = 1e300, .relative_to_max = 1};
  for (auto [got, want] :
       {std::pair{kNaN, 1.0}, {1.0, kNaN}, {kInf, 1.0}, {1.0, kInf}, {kInf, -kInf}, {kNaN, kInf}}) {
    Comparison result = compare(values(Type::f32, {0, got}), values(Type::f32, {0, want}), wide);
    EXPECT_FALSE(result.equal) << got << " " << want;
    EXPECT_EQ(result.worst_index, 1);
    EXPECT_EQ(result.worst_error, kInf);
  }
}

TEST(compare, Tolerances) {
  Literal want = values(Type::f64, {1, 100, 0});
  Literal got = values(Type::f64, {1.05, 99, 0.5});
  EXPECT_FALSE(compare(got, want, {.relative = 0.1}).equal);
  EXPECT_EQ(compare(got, want, {.relative = 0.1}).mismatches, 1);
  EXPECT_TRUE(compare(got, want, {.relative = 0.1, .absolute = 0.5}).equal);
  EXPECT_TRUE(compare(got, want, {.relative_to_max = 0.01}).equal);
  EXPECT_FALSE(compare(got, want, {.relative_to_max = 0.009}).equal);
  EXPECT_TRUE(compare(got, want, {.absolute = 1}).equal);
}

TEST(compare, TheWorstIsAMismatchIfThereIsOne) {
  Literal want = values(Type::f64, {100, 1, 1});
  Literal got = values(Type::f64, {101, 1.5, 1.25});
  Comparison result = compare(got, want, {.relative = 0.1});
  EXPECT_EQ(result.mismatches, 2);
  EXPECT_EQ(result.worst_index, 1);
  EXPECT_EQ(result.worst_got, 1.5);
  EXPECT_EQ(result.worst_want, 1);
  EXPECT_EQ(result.max_want, 100);
  EXPECT_NE(result.describe().find("2 elements differ; worst at element 1: got 1.5, want 1"),
            std::string::npos)
      << result.describe();
  // All within: the largest error.
  EXPECT_EQ(compare(got, want, {.relative = 1}).worst_index, 0);
  EXPECT_EQ(compare(got, want, {.relative = 1}).describe().substr(0, 16), "within tolerance");
}

TEST(compare, Integers) {
  Literal want(Shape::array(Type::u64, {2})), got(Shape::array(Type::u64, {2}));
  want.set_bits(0, ~uint64_t{0});
  got.set_bits(0, ~uint64_t{0} - 1);
  Comparison result = compare(got, want, kExact);
  EXPECT_EQ(result.mismatches, 1);  // equal as f64
  EXPECT_EQ(result.worst_error, 1);
  EXPECT_TRUE(compare(got, want, {.absolute = 1}).equal);
  Literal low(Shape::scalar(Type::s64)), high(Shape::scalar(Type::s64));
  low.set_s64(0, INT64_MIN);
  high.set_s64(0, INT64_MAX);
  EXPECT_EQ(compare(low, high, kExact).worst_error, 0x1p64);
}

TEST(compare, Complex) {
  Literal want(Shape::array(Type::c64, {1})), got = want;
  want.set_complex(0, {3, 4});
  got.set_complex(0, {3, 4.5});
  EXPECT_EQ(compare(got, want, kExact).worst_error, 0.5);
  EXPECT_EQ(compare(got, want, kExact).max_want, 5);
  EXPECT_TRUE(compare(got, want, {.relative = 0.1}).equal);
  EXPECT_FALSE(compare(got, want, {.relative = 0.09}).equal);
  want.set_complex(0, {kNaN, 1});
  got.set_complex(0, {kNaN, 1});
  EXPECT_TRUE(compare(got, want, kExact).equal);
  got.set_complex(0, {1, kNaN});
  EXPECT_FALSE(compare(got, want, {.absolute = 10}).equal);
}

TEST(compare, DerivedTolerance) {
  Tolerance one = derived_tolerance(Type::f32, 1);
  EXPECT_EQ(one.relative, 4 * 0x1p-24);
  EXPECT_EQ(one.relative_to_max, 0);
  EXPECT_EQ(one.absolute, 4 * 0x1p-24 * 0x1p-126);
  Tolerance two = derived_tolerance(Type::f32, 2);
  EXPECT_EQ(two.relative, 6 * 0x1p-24);
  EXPECT_EQ(two.relative_to_max, 2 * 0x1p-24);
  Tolerance many = derived_tolerance(Type::f32, 10001);
  EXPECT_EQ(many.relative_to_max, 800 * 0x1p-24);
  EXPECT_EQ(derived_tolerance(Type::c64, 2).relative, two.relative);
  EXPECT_EQ(derived_tolerance(Type::s32, 100).relative, 0);
  EXPECT_EQ(derived_tolerance(Type::pred, 100).absolute, 0);
  // A dot of bf16 that accumulates in f32 rounds to bf16 only at the end.
  Tolerance mixed = derived_tolerance(Type::bf16, 10001, Type::f32);
  EXPECT_EQ(mixed.relative, 4 * 0x1p-8 + 800 * 0x1p-24);
  EXPECT_EQ(mixed.relative_to_max, 800 * 0x1p-24);
}

// The derived bound holds for sums in two different orders, with cancellation.
TEST(compare, DerivedToleranceCoversReorderedSums) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t n : {2, 10, 100, 1000, 10000}) {
    Literal forward(Shape::array(Type::f32, {50})), backward = forward;
    for (int64_t row = 0; row < 50; ++row) {
      std::vector<float> terms;
      for (int64_t i = 0; i < n; ++i) terms.push_back(uniform(random));
      float up = 0, down = 0;
      for (int64_t i = 0; i < n; ++i) up += terms[i];
      for (int64_t i = n; i-- > 0;) down += terms[i];
      forward.set_f64(row, up);
      backward.set_f64(row, down);
    }
    Comparison result = compare(forward, backward, derived_tolerance(Type::f32, n));
    EXPECT_TRUE(result.equal) << n << ": " << result.describe();
  }
}

}  // namespace
}  // namespace heddle::tensor
