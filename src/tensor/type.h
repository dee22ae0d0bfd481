// Element types (the XLA set), their properties and exact conversions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::tensor {

enum class Type : uint8_t {
  pred,
  s1,
  s2,
  s4,
  s8,
  s16,
  s32,
  s64,
  u1,
  u2,
  u4,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f8e5m2,
  f8e4m3,
  f8e4m3fn,
  f8e4m3b11fnuz,
  f8e3m4,
  f8e5m2fnuz,
  f8e4m3fnuz,
  f8e8m0fnu,
  f6e3m2fn,
  f6e2m3fn,
  f4e2m1fn,
  c64,
  c128,
  opaque,
  token,
  tuple,  // not array types
};

// The name in HLO text: "f32", "bf16", "pred"; "opaque", "token", "(tuple)".
std::string_view type_name(Type type);
std::optional<Type> type_from_name(std::string_view name);

// Everything but opaque, token, tuple.
constexpr bool is_array_type(Type type) { return type <= Type::c128; }
// f64 down to f4; not complex.
constexpr bool is_float(Type type) { return type >= Type::f16 && type <= Type::f4e2m1fn; }
constexpr bool is_complex(Type type) { return type == Type::c64 || type == Type::c128; }
constexpr bool is_signed_integer(Type type) { return type >= Type::s1 && type <= Type::s64; }
constexpr bool is_unsigned_integer(Type type) { return type >= Type::u1 && type <= Type::u64; }
constexpr bool is_integer(Type type) {
  return is_signed_integer(type) || is_unsigned_integer(type);
}

int type_bits(Type type);  // logical width: 1 for pred, 4 for s4, 64 for c64
// Bytes of one element in a Literal and in npz: sub-byte types take a whole byte each.
int64_t type_bytes(Type type);
Type complex_component(Type type);  // c64 -> f32, c128 -> f64

// Float formats: exponent and mantissa bits, bias, and which special values exist.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity, has_nan, has_negative_zero, has_sign, has_zero;
  double max_finite;
  double unit_roundoff;  // 2^-(mantissa_bits + 1)
};
const FloatFormat& float_format(Type type);  // is_float(type)

// Exact reads; round-to-nearest-even writes. Bits are in the low end of the word. Overflow gives
// infinity if the format has one, else NaN (the XLA conversion rules); f6 and f4, which have
// neither, saturate and convert NaN to a zero (-0 for nan, +0 for -nan). In f8e8m0fnu zero and
// negative numbers become NaN, smaller positive numbers the smallest one, ties go up. Payloads of
// NaNs survive between f16, bf16, f32 and f64.
double float_from_bits(Type type, uint64_t bits);
uint64_t float_to_bits(Type type, double value);
// f32 -> small float without double rounding through another format: the same as float_to_bits, but
// fast, for the types that kernels move in bulk.
uint16_t f32_to_bf16(float value);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
float f16_to_f32(uint16_t bits);

}  // namespace heddle::tensor
