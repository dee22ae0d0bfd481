// HLO text of values.
#include <bit>
#include <charconv>
#include <cmath>

#include "tensor/literal.h"

namespace heddle::tensor {
namespace {

void append_nan(Type type, uint64_t bits, std::string& text) {
  const FloatFormat& format = float_format(type);
  uint64_t payload = bits & ((uint64_t{1} << format.mantissa_bits) - 1);
  bool negative = format.has_sign && format.has_negative_zero &&
                  (bits >> (format.exponent_bits + format.mantissa_bits) & 1);
  text += negative ? "-nan" : "nan";
  // Only formats with an infinity have more than one NaN of a sign.
  if (format.has_infinity && payload != uint64_t{1} << (format.mantissa_bits - 1)) {
    text += fmt::format("(0x{:x})", payload);
  }
}

template <typename T>
void append_shortest(T value, std::string& text) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  text.append(buffer, end.ptr);
}

// The fewest significant digits that read back to the same bits of a narrow format.
void append_narrow(Type type, uint64_t bits, double value, std::string& text) {
  char buffer[32];
  for (int digits = 1;; ++digits) {
    auto end =
        std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits);
    double back = 0;
    std::from_chars(buffer, end.ptr, back);
    // Formatted again: 450 is shorter than 4.5e+02.
    if (float_to_bits(type, back) == bits || digits == 17) return append_shortest(back, text);
  }
}

void append_float(Type type, uint64_t bits, std::string& text) {
  double value = float_from_bits(type, bits);
  if (std::isnan(value)) return append_nan(type, bits, text);
  if (std::isinf(value)) {
    text += value < 0 ? "-inf" : "inf";
  } else if (type == Type::f64) {
    append_shortest(value, text);
  } else if (type == Type::f32) {
    append_shortest(static_cast<float>(value), text);
  } else {
    append_narrow(type, bits, value, text);
  }
}

void append_element(const Literal& literal, int64_t i, std::string& text) {
  Type type = literal.type();
  if (type == Type::pred) {
    bool value = literal.get_s64(i) != 0;
    if (literal.shape().is_scalar()) {
      text += value ? "true" : "false";
    } else {
      text += value ? '1' : '0';
    }
  } else if (is_float(type)) {
    append_float(type, literal.get_bits(i), text);
  } else if (type == Type::c64) {
    const auto* parts = static_cast<const uint32_t*>(literal.data()) + 2 * i;
    text += '(';
    append_float(Type::f32, parts[0], text);
    text += ", ";
    append_float(Type::f32, parts[1], text);
    text += ')';
  } else if (type == Type::c128) {
    const auto* parts = static_cast<const uint64_t*>(literal.data()) + 2 * i;
    text += '(';
    append_float(Type::f64, parts[0], text);
    text += ", ";
    append_float(Type::f64, parts[1], text);
    text += ')';
  } else if (type == Type::u64) {
    text += fmt::to_string(literal.get_bits(i));
  } else {
    text += fmt::to_string(literal.get_s64(i));
  }
}

// Appends the elements of dimension `d` and the inner ones; `next` counts the elements written.
void append_box(const Literal& literal, int64_t d, int64_t& next, std::string& text) {
  int64_t rank = literal.shape().rank();
  if (d == rank) return append_element(literal, next++, text);
  bool spaced = d + 1 < rank && literal.shape().dim(d) > 0;
  text += spaced ? "{ " : "{";
  for (int64_t i = 0; i < literal.shape().dim(d); ++i) {
    if (i > 0) text += ", ";
    append_box(literal, d + 1, next, text);
  }
  text += spaced ? " }" : "}";
}

// Whether an array without elements would print too many braces: one pair per leading index.
bool too_many_braces(const Shape& shape) {
  constexpr int64_t kMaxBraces = 1 << 16;
  int64_t braces = 1;
  for (int64_t i = 0; i < shape.rank() && shape.dim(i) > 0; ++i) {
    if (__builtin_mul_overflow(braces, shape.dim(i), &braces) || braces > kMaxBraces) return true;
  }
  return false;
}

void append_literal(const Literal& literal, int64_t max_elems, std::string& text) {
  const Shape& shape = literal.shape();
  if (shape.is_tuple()) {
    text += '(';
    for (size_t i = 0; i < literal.elements().size(); ++i) {
      if (i > 0) text += ", ";
      append_literal(literal.elements()[i], max_elems, text);
    }
    text += ')';
    return;
  }
  if (!shape.is_array()) {
    text += type_name(shape.type());
  } else if (max_elems >= 0 && shape.elems() > max_elems && !shape.is_scalar()) {
    text += "{...}";
  } else if (shape.elems() == 0 && too_many_braces(shape)) {
    text += "{}";
  } else {
    int64_t next = 0;
    append_box(literal, 0, next, text);
  }
}

}  // namespace

std::string to_string(const Literal& literal, int64_t max_elems) {
  std::string text;
  append_literal(literal, max_elems, text);
  return text;
}

}  // namespace heddle::tensor
