#include "tensor/type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace heddle::tensor {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};

constexpr std::array kTypes = {
    TypeRow{"pred", 1},
    TypeRow{"s1", 1},
    TypeRow{"s2", 2},
    TypeRow{"s4", 4},
    TypeRow{"s8", 8},
    TypeRow{"s16", 16},
    TypeRow{"s32", 32},
    TypeRow{"s64", 64},
    TypeRow{"u1", 1},
    TypeRow{"u2", 2},
    TypeRow{"u4", 4},
    TypeRow{"u8", 8},
    TypeRow{"u16", 16},
    TypeRow{"u32", 32},
    TypeRow{"u64", 64},
    TypeRow{"f16", 16},
    TypeRow{"bf16", 16},
    TypeRow{"f32", 32},
    TypeRow{"f64", 64},
    TypeRow{"f8e5m2", 8},
    TypeRow{"f8e4m3", 8},
    TypeRow{"f8e4m3fn", 8},
    TypeRow{"f8e4m3b11fnuz", 8},
    TypeRow{"f8e3m4", 8},
    TypeRow{"f8e5m2fnuz", 8},
    TypeRow{"f8e4m3fnuz", 8},
    TypeRow{"f8e8m0fnu", 8},
    TypeRow{"f6e3m2fn", 6},
    TypeRow{"f6e2m3fn", 6},
    TypeRow{"f4e2m1fn", 4},
    TypeRow{"c64", 64},
    TypeRow{"c128", 128},
    TypeRow{"opaque", 0},
    TypeRow{"token", 0},
    TypeRow{"(tuple)", 0},
};
static_assert(kTypes.size() == static_cast<size_t>(Type::tuple) + 1);

const TypeRow& row(Type type) {
  HEDDLE_CHECK(static_cast<size_t>(type) < kTypes.size());
  return kTypes[static_cast<size_t>(type)];
}

// A format with the encodings that float_to_bits needs beyond FloatFormat.
struct FormatRow {
  FloatFormat format;
  uint64_t max_bits;  // encoding of max_finite
  uint64_t inf_bits;  // encoding of infinity; meaningless without one
  uint64_t nan_bits;  // the quiet NaN without payload, positive; meaningless without one
};

// 2^exponent without <cmath>, for the table.
constexpr double pow2(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

constexpr FormatRow ieee(int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint64_t inf = ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  double unit = pow2(-(mantissa_bits + 1));
  double max_finite = (2 - 2 * unit) * pow2(bias);
  return {{exponent_bits, mantissa_bits, bias, true, true, true, true, true, max_finite, unit},
          inf - 1,
          inf,
          inf | uint64_t{1} << (mantissa_bits - 1)};
}

// No infinity and no negative zero; the encoding of -0 is the only NaN.
constexpr FormatRow fnuz(int exponent_bits, int mantissa_bits, int bias) {
  uint64_t max_bits = (uint64_t{1} << (exponent_bits + mantissa_bits)) - 1;
  double unit = pow2(-(mantissa_bits + 1));
  double max_finite = (2 - 2 * unit) * pow2((1 << exponent_bits) - 1 - bias);
  return {{exponent_bits, mantissa_bits, bias, false, true, false, true, true, max_finite, unit},
          max_bits,
          0,
          max_bits + 1};
}

// Neither infinity nor NaN: every encoding is a number.
constexpr FormatRow finite_only(int exponent_bits, int mantissa_bits, int bias) {
  FormatRow result = fnuz(exponent_bits, mantissa_bits, bias);
  result.format.has_nan = false;
  result.format.has_negative_zero = true;
  result.nan_bits = 0;
  return result;
}

// f8e4m3fn: no infinity; the topmost magnitude is NaN, the one below it is 448.
constexpr FormatRow e4m3fn() {
  return {{4, 3, 7, false, true, true, true, true, 448, pow2(-4)}, 0x7e, 0, 0x7f};
}

// f8e8m0fnu: powers of two from 2^-127 to 2^127; no sign, no zero.
constexpr FormatRow e8m0fnu() {
  return {{8, 0, 127, false, true, false, false, false, pow2(127), 0.5}, 0xfe, 0, 0xff};
}

constexpr std::array kFormats = {
    ieee(5, 10),           // f16
    ieee(8, 7),            // bf16
    ieee(8, 23),           // f32
    ieee(11, 52),          // f64
    ieee(5, 2),            // f8e5m2
    ieee(4, 3),            // f8e4m3
    e4m3fn(),              // f8e4m3fn
    fnuz(4, 3, 11),        // f8e4m3b11fnuz
    ieee(3, 4),            // f8e3m4
    fnuz(5, 2, 16),        // f8e5m2fnuz
    fnuz(4, 3, 8),         // f8e4m3fnuz
    e8m0fnu(),             // f8e8m0fnu
    finite_only(3, 2, 3),  // f6e3m2fn
    finite_only(2, 3, 1),  // f6e2m3fn
    finite_only(2, 1, 1),  // f4e2m1fn
};

const FormatRow& format_row(Type type) {
  HEDDLE_CHECK(is_float(type), "{} is not a float type", type_name(type));
  return kFormats[static_cast<size_t>(type) - static_cast<size_t>(Type::f16)];
}

uint64_t sign_mask(const FloatFormat& format) {
  return format.has_sign ? uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
}

uint64_t nan_to_bits(const FormatRow& row, uint64_t f64_bits) {
  const FloatFormat& format = row.format;
  bool negative = f64_bits >> 63;
  if (!format.has_nan) return negative ? 0 : sign_mask(format);  // as XLA does
  if (!format.has_sign || !format.has_negative_zero) return row.nan_bits;
  uint64_t bits = row.nan_bits | (negative ? sign_mask(format) : 0);
  // The payload survives in the formats that processors convert, as on hardware.
  if (format.mantissa_bits >= 7) {
    bits |= (f64_bits & ((uint64_t{1} << 52) - 1)) >> (52 - format.mantissa_bits);
  }
  return bits;
}

uint64_t overflow_bits(const FormatRow& row, bool negative) {
  const FloatFormat& format = row.format;
  uint64_t sign = negative ? sign_mask(format) : 0;
  if (format.has_infinity) return row.inf_bits | sign;
  if (!format.has_nan) return row.max_bits | sign;  // nothing to overflow to: saturate
  if (!format.has_negative_zero) return row.nan_bits;
  return row.nan_bits | sign;
}

// mantissa / 2^shift, to nearest, ties to even.
uint64_t round_shift(uint64_t mantissa, int shift) {
  if (shift <= 0) return mantissa << -shift;
  if (shift > 54) return 0;  // mantissa < 2^53: below a quarter
  uint64_t quotient = mantissa >> shift;
  uint64_t rest = mantissa - (quotient << shift);
  uint64_t half = uint64_t{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)));
}

}  // namespace

std::string_view type_name(Type type) { return row(type).name; }

std::optional<Type> type_from_name(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

int type_bits(Type type) { return row(type).bits; }
int64_t type_bytes(Type type) { return (row(type).bits + 7) / 8; }

Type complex_component(Type type) {
  HEDDLE_CHECK(is_complex(type), "{} is not complex", type_name(type));
  return type == Type::c64 ? Type::f32 : Type::f64;
}

const FloatFormat& float_format(Type type) { return format_row(type).format; }

double float_from_bits(Type type, uint64_t bits) {
  if (type == Type::f64) return std::bit_cast<double>(bits);
  const FormatRow& row = format_row(type);
  const FloatFormat& format = row.format;
  uint64_t sign = sign_mask(format);
  bool negative = (bits & sign) != 0;
  uint64_t low = (uint64_t{1} << (format.exponent_bits + format.mantissa_bits)) - 1;
  uint64_t magnitude = bits & low;
  uint64_t f64_sign = static_cast<uint64_t>(negative) << 63;
  if (format.has_nan) {
    bool nan = format.has_negative_zero || !format.has_sign ? magnitude > row.max_bits
                                                            : (bits & (low | sign)) == row.nan_bits;
    if (format.has_infinity && magnitude == row.inf_bits) nan = false;
    if (nan) {
      uint64_t payload = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
      if (!format.has_infinity) payload = 0;  // their NaNs have no payload
      return std::bit_cast<double>(f64_sign | uint64_t{0x7ff8} << 48 |
                                   payload << (52 - format.mantissa_bits));
    }
  }
  if (format.has_infinity && magnitude == row.inf_bits) {
    return std::bit_cast<double>(f64_sign | uint64_t{0x7ff} << 52);
  }
  uint64_t field = magnitude >> format.mantissa_bits;
  uint64_t mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
  if (field == 0 && format.has_zero) {
    double quantum = pow2(1 - format.bias - format.mantissa_bits);
    double value = static_cast<double>(mantissa) * quantum;
    return negative ? -value : value;
  }
  uint64_t exponent = field + static_cast<uint64_t>(1023 - format.bias);
  return std::bit_cast<double>(f64_sign | exponent << 52 | mantissa << (52 - format.mantissa_bits));
}

uint64_t float_to_bits(Type type, double value) {
  auto f64_bits = std::bit_cast<uint64_t>(value);
  if (type == Type::f64) return f64_bits;
  const FormatRow& row = format_row(type);
  const FloatFormat& format = row.format;
  bool negative = f64_bits >> 63;
  if (std::isnan(value)) return nan_to_bits(row, f64_bits);
  if (negative && !format.has_sign) return row.nan_bits;
  if (std::isinf(value)) return overflow_bits(row, negative);
  if (value == 0 && !format.has_zero) return row.nan_bits;

  // |value| = mantissa * 2^(exponent - 52); the leading bit is set except for f64 subnormals,
  // which are far below half of the smallest number of every other format.
  uint64_t mantissa = f64_bits & ((uint64_t{1} << 52) - 1);
  int exponent = static_cast<int>(f64_bits >> 52 & 0x7ff) - 1023;
  if (exponent > -1023) mantissa |= uint64_t{1} << 52;
  int min_exponent = (format.has_zero ? 1 : 0) - format.bias;
  int scale = std::max(exponent, min_exponent);
  uint64_t quanta = round_shift(mantissa, scale - exponent + 52 - format.mantissa_bits);
  if (quanta == 0 && !format.has_zero) quanta = 1;  // positive stays positive
  // A normal number's leading quantum is the implicit bit: it adds one to the exponent field.
  auto field = static_cast<uint64_t>(scale + format.bias - 1);
  uint64_t bits = (field << format.mantissa_bits) + quanta;
  if (bits > row.max_bits && scale > min_exponent) return overflow_bits(row, negative);
  if (negative && (bits != 0 || format.has_negative_zero)) bits |= sign_mask(format);
  return bits;
}

uint16_t f32_to_bf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_f16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  }
  if (magnitude >= 0x47800000) return sign | 0x7c00;  // 65536 and more
  if (magnitude < 0x38800000) {                       // below 2^-14
    // Adding 0.5 puts a subnormal's quanta into the low bits, rounded by the addition itself.
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float f16_to_f32(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {
    uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | quiet | (magnitude & 0x3ff) << 13);
  }
  if (magnitude < 0x400) {
    float value = std::bit_cast<float>(0x3f000000 + magnitude) - 0.5f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}

}  // namespace heddle::tensor
