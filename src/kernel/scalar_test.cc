#include "kernel/scalar.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace heddle::kernel {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

uint64_t u(int64_t value) { return static_cast<uint64_t>(value); }
uint64_t f32(double value) { return tensor::float_to_bits(Type::f32, value); }
double f32_value(uint64_t bits) { return tensor::float_from_bits(Type::f32, bits); }

int64_t s8_op(Op op, int a, int b) {
  return static_cast<int64_t>(evaluate(op, Type::s8, u(a), u(b)));
}

// All pairs of s8 against the definitions in wide integers.
TEST(Scalar, IntegerOperatorsOfAllS8Pairs) {
  auto wrap = [](int64_t x) { return int64_t{static_cast<int8_t>(x)}; };
  for (int a = -128; a < 128; ++a) {
    for (int b = -128; b < 128; ++b) {
      ASSERT_EQ(s8_op(Op::add, a, b), wrap(a + b));
      ASSERT_EQ(s8_op(Op::sub, a, b), wrap(a - b));
      ASSERT_EQ(s8_op(Op::mul, a, b), wrap(a * b));
      ASSERT_EQ(s8_op(Op::mulhi, a, b), (a * b) >> 8);
      ASSERT_EQ(s8_op(Op::div, a, b), b == 0 ? -1 : wrap(a / b));
      ASSERT_EQ(s8_op(Op::rem, a, b), b == 0 ? a : a % b);
      ASSERT_EQ(s8_op(Op::min, a, b), std::min(a, b));
      ASSERT_EQ(s8_op(Op::max, a, b), std::max(a, b));
      ASSERT_EQ(s8_op(Op::xor_, a, b), a ^ b);
      ASSERT_EQ(s8_op(Op::lt, a, b), a < b);
      bool over = b < 0 || b > 7;
      ASSERT_EQ(s8_op(Op::shl, a, b), over ? 0 : wrap(int64_t{a} * (1 << b)));
      ASSERT_EQ(s8_op(Op::shr_arithmetic, a, b), over ? (a < 0 ? -1 : 0) : a >> b);
      ASSERT_EQ(s8_op(Op::shr_logical, a, b), over ? 0 : wrap((a & 255) >> b));
      if (b > 0) {
        auto floor = static_cast<int64_t>(std::floor(static_cast<double>(a) / b));
        ASSERT_EQ(s8_op(Op::floor_div, a, b), floor);
        ASSERT_EQ(s8_op(Op::floor_mod, a, b), a - floor * b);
      }
    }
    ASSERT_EQ(s8_op(Op::neg, a, 0), wrap(-a));
    ASSERT_EQ(s8_op(Op::abs, a, 0), wrap(std::abs(a)));
    ASSERT_EQ(s8_op(Op::not_, a, 0), ~a);
    ASSERT_EQ(s8_op(Op::sign, a, 0), (a > 0) - (a < 0));
    ASSERT_EQ(s8_op(Op::popcnt, a, 0), std::popcount(static_cast<uint8_t>(a)));
    ASSERT_EQ(s8_op(Op::clz, a, 0), std::countl_zero(static_cast<uint8_t>(a)));
  }
}

TEST(Scalar, WideIntegersWrap) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(evaluate(Op::div, Type::s64, u(kMin), u(-1)), u(kMin));
  EXPECT_EQ(evaluate(Op::rem, Type::s64, u(kMin), u(-1)), 0u);
  EXPECT_EQ(evaluate(Op::abs, Type::s64, u(kMin)), u(kMin));
  EXPECT_EQ(evaluate(Op::add, Type::s64, u(kMin), u(-1)), u(kMin) - 1);
  EXPECT_EQ(evaluate(Op::mulhi, Type::s64, u(kMin), u(kMin)), uint64_t{1} << 62);
  EXPECT_EQ(evaluate(Op::mulhi, Type::u64, ~uint64_t{0}, ~uint64_t{0}), ~uint64_t{1});
  EXPECT_EQ(evaluate(Op::div, Type::u32, 7, 0), 0xffffffffu);
  EXPECT_EQ(evaluate(Op::sub, Type::u32, 0, 1), 0xffffffffu);
  EXPECT_EQ(evaluate(Op::lt, Type::u64, 1, ~uint64_t{0}), 1u);
  EXPECT_EQ(evaluate(Op::lt, Type::s64, 1, ~uint64_t{0}), 0u);
  EXPECT_EQ(evaluate(Op::clz, Type::u16, 0), 16u);
  EXPECT_EQ(evaluate(Op::not_, Type::pred, 1), 0u);
  EXPECT_EQ(evaluate(Op::shl, Type::u64, 1, 63), uint64_t{1} << 63);
  EXPECT_EQ(evaluate(Op::shl, Type::u64, 1, 64), 0u);
}

TEST(Scalar, FloatingPoint) {
  auto one = [](Op op, double x) { return f32_value(evaluate(op, Type::f32, f32(x))); };
  auto two = [](Op op, double x, double y) {
    return f32_value(evaluate(op, Type::f32, f32(x), f32(y)));
  };
  EXPECT_EQ(two(Op::add, 1, 0x1p-24), 1);                // rounded to even in f32
  EXPECT_EQ(two(Op::mul, 0x1p-100, 0x1p-49), 0x1p-149);  // subnormals are kept
  EXPECT_TRUE(std::isnan(two(Op::max, kNan, 1)) && std::isnan(two(Op::max, 1, kNan)));
  EXPECT_TRUE(std::isnan(two(Op::min, kNan, 1)) && std::isnan(two(Op::min, 1, kNan)));
  EXPECT_EQ(two(Op::max, -kInf, 1), 1);
  EXPECT_EQ(two(Op::rem, -7, 3), -1);
  EXPECT_EQ(one(Op::round_even, 2.5), 2);
  EXPECT_EQ(one(Op::round_away, 2.5), 3);
  EXPECT_EQ(one(Op::round_away, -2.5), -3);
  EXPECT_EQ(evaluate(Op::sign, Type::f32, f32(-0.0)), f32(-0.0));
  EXPECT_TRUE(std::isnan(one(Op::sign, kNan)));
  EXPECT_EQ(one(Op::sign, -3), -1);
  EXPECT_EQ(one(Op::exp, 1), static_cast<float>(std::exp(1.0)));
  EXPECT_EQ(one(Op::logistic, 0), 0.5);
  EXPECT_EQ(one(Op::rsqrt, 4), 0.5);
  EXPECT_EQ(one(Op::erf, kInf), 1);
  EXPECT_EQ(two(Op::pow, 2, 0.5), static_cast<float>(std::sqrt(2.0)));
  EXPECT_EQ(evaluate(Op::is_finite, Type::f32, f32(kInf)), 0u);
  EXPECT_EQ(evaluate(Op::ne, Type::f32, f32(kNan), f32(kNan)), 1u);
  for (Op op : {Op::eq, Op::lt, Op::le, Op::gt, Op::ge}) {
    EXPECT_EQ(evaluate(op, Type::f32, f32(kNan), f32(kNan)), 0u);
  }
  // fma rounds once: (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24.
  double x = 1 + 0x1p-12;
  EXPECT_EQ(f32_value(evaluate(Op::fma, Type::f32, f32(x), f32(x), f32(-(1 + 0x1p-11)))), 0x1p-24);
  EXPECT_EQ(evaluate(Op::select, Type::f32, 1, 5, 6), 5u);
}

TEST(Scalar, Conversions) {
  auto to = [](Type from, Type type, uint64_t bits) { return convert_bits(from, type, bits); };
  EXPECT_EQ(to(Type::f32, Type::s32, f32(-1.9)), u(-1));
  EXPECT_EQ(to(Type::f32, Type::s8, f32(300)), u(127));
  EXPECT_EQ(to(Type::f32, Type::s8, f32(-300)), u(-128));
  EXPECT_EQ(to(Type::f32, Type::u8, f32(-3)), 0u);
  EXPECT_EQ(to(Type::f32, Type::u8, f32(kInf)), 255u);
  EXPECT_EQ(to(Type::f32, Type::s64, f32(kInf)), u(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(to(Type::f32, Type::s64, f32(-kInf)), u(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(to(Type::f32, Type::u64, f32(0x1p64)), ~uint64_t{0});
  EXPECT_EQ(to(Type::f32, Type::u64, f32(0x1p63)), uint64_t{1} << 63);
  EXPECT_EQ(to(Type::f32, Type::s32, f32(kNan)), 0u);
  EXPECT_EQ(to(Type::f32, Type::pred, f32(0.5)), 1u);
  EXPECT_EQ(to(Type::s32, Type::pred, u(-4)), 1u);
  EXPECT_EQ(to(Type::pred, Type::f32, 1), f32(1));
  EXPECT_EQ(to(Type::s32, Type::u8, u(-1)), 255u);
  EXPECT_EQ(to(Type::u8, Type::s8, 255), u(-1));
  EXPECT_EQ(to(Type::s64, Type::f32, u((int64_t{1} << 62) + (int64_t{1} << 38) + 1)),
            f32(0x1p62 + 0x1p39));  // one rounding, not by way of double
  EXPECT_EQ(to(Type::s64, Type::f32, u(-((int64_t{1} << 62) + (int64_t{1} << 38) + 1))),
            f32(-(0x1p62 + 0x1p39)));
  EXPECT_EQ(to(Type::u64, Type::f64, ~uint64_t{0}), tensor::float_to_bits(Type::f64, 0x1p64));
  EXPECT_EQ(to(Type::s64, Type::bf16, u((int64_t{1} << 62) + (int64_t{1} << 54) + 1)),
            tensor::float_to_bits(Type::bf16, 0x1p62 + 0x1p55));
  EXPECT_EQ(to(Type::s64, Type::bf16, u((int64_t{1} << 62) + (int64_t{1} << 54) - 1)),
            tensor::float_to_bits(Type::bf16, 0x1p62));
  EXPECT_EQ(to(Type::s64, Type::bf16, u(-((int64_t{1} << 62) + (int64_t{1} << 54) + 1))),
            tensor::float_to_bits(Type::bf16, -(0x1p62 + 0x1p55)));
  EXPECT_EQ(to(Type::f64, Type::bf16, tensor::float_to_bits(Type::f64, 1 + 0x1p-8 + 0x1p-40)),
            0x3f81u);
  EXPECT_EQ(to(Type::f16, Type::f8e4m3fn, tensor::float_to_bits(Type::f16, 448)), 0x7eu);
  EXPECT_EQ(canonical_bits(Type::s16, 0x18000), u(-32768));
  EXPECT_EQ(canonical_bits(Type::pred, 3), 1u);
}

// Each operator has code for each type that it takes, and for no other.
TEST(Scalar, TheTableIsComplete) {
  for (int i = 0; i <= static_cast<int>(Op::fma); ++i) {
    Op op = static_cast<Op>(i);
    bool moves = op == Op::lane || op == Op::shuffle_xor;
    for (int t = 0; t <= static_cast<int>(Type::tuple); ++t) {
      Type type = static_cast<Type>(t);
      if (!op_takes(op, type) || moves) continue;
      EXPECT_NE(lane_function(op, type), nullptr);
      (void)evaluate(op, type, 1, 1, 1);
    }
  }
  EXPECT_FALSE(op_takes(Op::add, Type::bf16));
  EXPECT_FALSE(op_takes(Op::add, Type::pred));
  EXPECT_FALSE(op_takes(Op::exp, Type::s32));
  EXPECT_FALSE(op_takes(Op::convert, Type::f32));
  EXPECT_FALSE(can_convert(Type::f32, Type::c64));
  EXPECT_FALSE(can_convert(Type::f32, Type::s4));
}

}  // namespace
}  // namespace heddle::kernel
