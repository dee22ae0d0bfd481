#include "tensor/type.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace heddle::tensor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Type> types_where(bool (*predicate)(Type)) {
  std::vector<Type> result;
  for (int i = 0; i <= static_cast<int>(Type::tuple); ++i) {
    if (predicate(static_cast<Type>(i))) result.push_back(static_cast<Type>(i));
  }
  return result;
}

std::vector<Type> small_floats() {
  return types_where([](Type t) { return is_float(t) && type_bits(t) <= 16; });
}

std::string name(Type type) { return std::string(type_name(type)); }

TEST(type, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(Type::tuple); ++i) {
    auto type = static_cast<Type>(i);
    EXPECT_EQ(type_from_name(type_name(type)), type);
  }
  EXPECT_EQ(type_name(Type::f8e4m3b11fnuz), "f8e4m3b11fnuz");
  EXPECT_EQ(type_name(Type::tuple), "(tuple)");
  EXPECT_EQ(type_from_name("f33"), std::nullopt);
  EXPECT_EQ(type_from_name(""), std::nullopt);
}

TEST(type, WidthsFollowFromNames) {
  // The digits after the first letters are the width: s4, u64, bf16, f8e5m2, c128.
  for (Type type : types_where(is_array_type)) {
    if (type == Type::pred) continue;
    std::string text = name(type);
    int bits = std::stoi(text.substr(text.find_first_of("0123456789")));
    EXPECT_EQ(type_bits(type), bits) << text;
    EXPECT_EQ(type_bytes(type), std::max(bits / 8, 1)) << text;
  }
  EXPECT_EQ(type_bits(Type::pred), 1);
  EXPECT_EQ(type_bytes(Type::pred), 1);
  EXPECT_EQ(complex_component(Type::c64), Type::f32);
  EXPECT_EQ(complex_component(Type::c128), Type::f64);
}

TEST(type, ClassesPartitionTheArrayTypes) {
  for (int i = 0; i <= static_cast<int>(Type::tuple); ++i) {
    auto type = static_cast<Type>(i);
    int classes = (type == Type::pred) + is_signed_integer(type) + is_unsigned_integer(type) +
                  is_float(type) + is_complex(type);
    EXPECT_EQ(classes, is_array_type(type) ? 1 : 0) << name(type);
    char first = name(type)[0];
    bool number = name(type).find_first_of("0123456789") != std::string::npos;
    EXPECT_EQ(is_signed_integer(type), first == 's') << name(type);
    EXPECT_EQ(is_unsigned_integer(type), first == 'u') << name(type);
    EXPECT_EQ(is_complex(type), first == 'c') << name(type);
    EXPECT_EQ(is_float(type), number && (first == 'f' || first == 'b')) << name(type);
  }
  EXPECT_EQ(types_where(is_float).size(), 15u);
}

TEST(type, EveryPatternRoundTrips) {
  for (Type type : small_floats()) {
    for (uint64_t bits = 0; bits < uint64_t{1} << type_bits(type); ++bits) {
      double value = float_from_bits(type, bits);
      uint64_t back = float_to_bits(type, value);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(float_from_bits(type, back))) << name(type) << " " << bits;
      } else {
        ASSERT_EQ(back, bits) << name(type) << " " << value;
      }
    }
  }
}

TEST(type, ExtremesAreThePublishedOnes) {
  struct Row {
    Type type;
    double max_finite, min_normal, min_positive;
  };
  const Row rows[] = {
      {Type::f16, 65504, 0x1p-14, 0x1p-24},
      {Type::bf16, 0x1.fep127, 0x1p-126, 0x1p-133},
      {Type::f32, 0x1.fffffep127, 0x1p-126, 0x1p-149},
      {Type::f64, std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074},
      {Type::f8e5m2, 57344, 0x1p-14, 0x1p-16},
      {Type::f8e4m3, 240, 0x1p-6, 0x1p-9},
      {Type::f8e4m3fn, 448, 0x1p-6, 0x1p-9},
      {Type::f8e4m3b11fnuz, 30, 0x1p-10, 0x1p-13},
      {Type::f8e3m4, 15.5, 0.25, 0x1p-6},
      {Type::f8e5m2fnuz, 57344, 0x1p-15, 0x1p-17},
      {Type::f8e4m3fnuz, 240, 0x1p-7, 0x1p-10},
      {Type::f8e8m0fnu, 0x1p127, 0x1p-127, 0x1p-127},
      {Type::f6e3m2fn, 28, 0.25, 0.0625},
      {Type::f6e2m3fn, 7.5, 1, 0.125},
      {Type::f4e2m1fn, 6, 1, 0.5},
  };
  for (const Row& row : rows) {
    const FloatFormat& format = float_format(row.type);
    EXPECT_EQ(format.max_finite, row.max_finite) << name(row.type);
    EXPECT_EQ(std::ldexp(1.0, (format.has_zero ? 1 : 0) - format.bias), row.min_normal);
    EXPECT_EQ(float_from_bits(row.type, format.has_zero ? 1 : 0), row.min_positive);
    EXPECT_EQ(format.unit_roundoff, std::ldexp(0.5, -format.mantissa_bits));
    EXPECT_EQ(float_from_bits(row.type, float_to_bits(row.type, row.max_finite)), row.max_finite);
  }
}

// All finite values of a small format with their encodings, ascending.
std::vector<std::pair<double, uint64_t>> finite_values(Type type) {
  std::vector<std::pair<double, uint64_t>> result;
  for (uint64_t bits = 0; bits < uint64_t{1} << type_bits(type); ++bits) {
    double value = float_from_bits(type, bits);
    if (std::isfinite(value) && !(value == 0 && bits != 0)) result.emplace_back(value, bits);
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(type, RoundsToNearestTiesToEven) {
  for (Type type : small_floats()) {
    auto values = finite_values(type);
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      double low = values[i].first, high = values[i + 1].first;
      double middle = (low + high) / 2;  // exact: a few more bits than the format
      double below = std::nextafter(middle, -kInf), above = std::nextafter(middle, kInf);
      auto rounded = [&](double v) { return float_from_bits(type, float_to_bits(type, v)); };
      ASSERT_EQ(rounded(below), low) << name(type);
      ASSERT_EQ(rounded(above), high) << name(type);
      // Ties go to the even encoding; formats with only powers of two (e8m0) have none, ties go up.
      bool low_is_even = type != Type::f8e8m0fnu && (values[i].second & 1) == 0;
      ASSERT_EQ(rounded(middle), low_is_even ? low : high) << name(type) << " " << middle;
    }
  }
}

TEST(type, MonotoneOverRandomValues) {
  std::mt19937_64 random(7);
  for (Type type : small_floats()) {
    const FloatFormat& format = float_format(type);
    std::vector<double> values;
    for (int i = 0; i < 2000; ++i) {
      int exponent = static_cast<int>(random() % (2 * format.bias + 8)) - format.bias - 4;
      double value = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, exponent);
      values.push_back(format.has_sign && random() % 2 ? -value : value);
    }
    std::sort(values.begin(), values.end());
    double last = -kInf;
    for (double value : values) {
      double rounded = float_from_bits(type, float_to_bits(type, value));
      if (std::isnan(rounded)) continue;  // beyond the range
      ASSERT_GE(rounded, last) << name(type) << " " << value;
      last = rounded;
    }
  }
}

TEST(type, OverflowGoesWhereTheFormatSays) {
  for (Type type : small_floats()) {
    const FloatFormat& format = float_format(type);
    for (double huge : {1e300, kInf, format.max_finite * 2}) {
      double got = float_from_bits(type, float_to_bits(type, huge));
      if (format.has_infinity) {
        EXPECT_EQ(got, kInf) << name(type);
      } else if (format.has_nan) {
        EXPECT_TRUE(std::isnan(got)) << name(type);
      } else {
        EXPECT_EQ(got, format.max_finite) << name(type);
      }
      if (!format.has_sign) continue;
      double negative = float_from_bits(type, float_to_bits(type, -huge));
      EXPECT_TRUE(std::isnan(got) ? std::isnan(negative) : negative == -got) << name(type);
    }
  }
  // Half a step beyond the largest: up to the tie it rounds to the largest.
  EXPECT_EQ(float_to_bits(Type::f8e4m3fn, 464), 0x7eu);
  EXPECT_EQ(float_to_bits(Type::f8e4m3fn, 464.001), 0x7fu);
  EXPECT_EQ(float_to_bits(Type::f16, 65519.99), 0x7bffu);
  EXPECT_EQ(float_to_bits(Type::f16, 65520), 0x7c00u);
  EXPECT_EQ(float_to_bits(Type::f8e5m2, 61440), 0x7cu);
  EXPECT_EQ(float_to_bits(Type::f4e2m1fn, 7), 0x7u);
}

TEST(type, SpecialEncodings) {
  EXPECT_EQ(float_to_bits(Type::f8e4m3fn, kNaN), 0x7fu);
  EXPECT_EQ(float_to_bits(Type::f8e4m3fn, -kNaN), 0xffu);
  EXPECT_EQ(float_to_bits(Type::f8e5m2, kNaN), 0x7eu);
  EXPECT_EQ(float_to_bits(Type::f8e5m2, -kInf), 0xfcu);
  for (Type type : {Type::f8e4m3fnuz, Type::f8e5m2fnuz, Type::f8e4m3b11fnuz}) {
    EXPECT_EQ(float_to_bits(type, kNaN), 0x80u);
    EXPECT_EQ(float_to_bits(type, -kNaN), 0x80u);
    EXPECT_EQ(float_to_bits(type, -kInf), 0x80u);
    EXPECT_EQ(float_to_bits(type, -0.0), 0u);
    EXPECT_EQ(float_to_bits(type, -1e-300), 0u);
  }
  EXPECT_EQ(float_to_bits(Type::f16, -0.0), 0x8000u);
  EXPECT_EQ(float_to_bits(Type::f4e2m1fn, -0.0), 0x8u);
  EXPECT_EQ(float_to_bits(Type::f4e2m1fn, kNaN), 0x8u);
  EXPECT_EQ(float_to_bits(Type::f6e2m3fn, kNaN), 0x20u);
  EXPECT_EQ(float_to_bits(Type::f8e8m0fnu, 0), 0xffu);
  EXPECT_EQ(float_to_bits(Type::f8e8m0fnu, -1), 0xffu);
  EXPECT_EQ(float_to_bits(Type::f8e8m0fnu, 1e-300), 0u);
  EXPECT_EQ(float_to_bits(Type::f8e8m0fnu, 1), 0x7fu);
  EXPECT_EQ(float_to_bits(Type::f8e8m0fnu, 3), 0x81u);
  EXPECT_EQ(float_to_bits(Type::bf16, kNaN), 0x7fc0u);
  EXPECT_EQ(float_to_bits(Type::f32, kNaN), 0x7fc00000u);
}

// The processor's own conversions are the reference for f32.
TEST(type, F32AgreesWithTheProcessor) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200000; ++i) {
    uint64_t f64_bits = random();
    if (i % 2) {  // around the range of f32, and often a tie
      uint64_t exponent = 1023 - 160 + random() % 300;
      f64_bits = (f64_bits & 0x800fffffe0000000) | exponent << 52 | (i % 4 == 1 ? 0x10000000 : 0);
    }
    auto value = std::bit_cast<double>(f64_bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_bits(Type::f32, value), std::bit_cast<uint32_t>(static_cast<float>(value)))
        << value;
    auto bits = static_cast<uint32_t>(random());
    auto narrow = std::bit_cast<float>(bits);
    if (std::isnan(narrow)) continue;
    ASSERT_EQ(float_from_bits(Type::f32, bits), narrow);
  }
}

TEST(type, FastHalvesAgreeWithTheGenericOnes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto narrow = static_cast<uint16_t>(bits);
    auto f16 = std::bit_cast<uint32_t>(f16_to_f32(narrow));
    auto bf16 = std::bit_cast<uint32_t>(bf16_to_f32(narrow));
    ASSERT_EQ(f16, float_to_bits(Type::f32, float_from_bits(Type::f16, bits))) << bits;
    if (!std::isnan(bf16_to_f32(narrow))) {
      ASSERT_EQ(bf16, float_to_bits(Type::f32, float_from_bits(Type::bf16, bits))) << bits;
    }
  }
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    double wide = float_from_bits(Type::f32, bits);
    ASSERT_EQ(f32_to_f16(value), float_to_bits(Type::f16, wide)) << bits;
    ASSERT_EQ(f32_to_bf16(value), float_to_bits(Type::bf16, wide)) << bits;
  }
  // Every tie and its two neighbours between the values of both formats.
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 0x1000) {
    for (uint32_t near : {bits - 1, bits, bits + 1}) {
      auto value = std::bit_cast<float>(near);
      double wide = float_from_bits(Type::f32, near);
      ASSERT_EQ(f32_to_f16(value), float_to_bits(Type::f16, wide)) << near;
      ASSERT_EQ(f32_to_bf16(value), float_to_bits(Type::bf16, wide)) << near;
    }
  }
}

}  // namespace
}  // namespace heddle::tensor
