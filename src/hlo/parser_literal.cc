// Literals. An array's text must be long enough for its elements before memory is allocated for
// them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "hlo/parser.h"

namespace heddle::hlo {
namespace {

using tensor::FloatFormat;

// The counter pattern of {...}: small, exact in every type, not all equal.
uint64_t counter_bits(Type type, int64_t i) {
  const int bits = tensor::type_bits(type);
  if (tensor::is_float(type)) {
    const FloatFormat& format = tensor::float_format(type);
    if (!format.has_sign || !format.has_zero)
      return tensor::float_to_bits(type, std::ldexp(1.0, static_cast<int>(i % 4)));
    return tensor::float_to_bits(type, static_cast<double>(i % 8 - 3) / 2);
  }
  if (type == Type::pred) return i % 2;
  const int value_bits = tensor::is_signed_integer(type) ? bits - 1 : bits;
  return i % (int64_t{1} << std::min(value_bits, 3));
}

// A number's characters: digits, sign, point, exponent.
std::string_view number_token(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && (is_ident_char(text[n]) || text[n] == '+')) ++n;
  return text.substr(0, n);
}

// The nearest value; +-infinity if the token overflows, nothing if it is not a number. from_chars
// alone does not tell overflow from underflow.
template <typename T>
std::optional<T> to_float(std::string_view token) {
  T value = 0;
  const auto end = std::from_chars(token.data(), token.data() + token.size(), value);
  if (end.ptr != token.data() + token.size() || end.ec == std::errc::invalid_argument)
    return std::nullopt;
  if (end.ec == std::errc()) return value;
  const std::string copy(token);
  if constexpr (sizeof(T) == sizeof(float)) return std::strtof(copy.c_str(), nullptr);
  return static_cast<T>(std::strtod(copy.c_str(), nullptr));
}

// Formats without infinity and NaN saturate, so the bits alone do not show an overflow. The
// shortest decimal form of the largest value may be above it ("8" for 7.5), but not above the next
// power of two.
bool rounds_to_finite(Type type, double value, uint64_t bits) {
  const FloatFormat& format = tensor::float_format(type);
  if (!format.has_infinity && !format.has_nan)
    return std::abs(value) <= std::ldexp(1.0, std::ilogb(format.max_finite) + 1);
  return std::isfinite(tensor::float_from_bits(type, bits));
}

template <typename T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

// Fills every leaf with the counter pattern.
void fill_leaves(Literal& out) {
  for (Literal& element : out.mutable_elements()) fill_leaves(element);
  const Shape& shape = out.shape();
  if (!shape.is_array()) return;
  for (int64_t i = 0; i < out.elems(); ++i) {
    if (!tensor::is_complex(shape.type())) {
      out.set_bits(i, counter_bits(shape.type(), i));
    } else {
      out.set_complex(i, {static_cast<double>(i % 8 - 3) / 2, static_cast<double>(i % 3)});
    }
  }
}

}  // namespace

Result<Literal> Parser::literal(const Shape& shape) {
  elided_ = false;
  const size_t at = lexer_.offset();
  HEDDLE_ASSIGN_OR_RETURN(Literal out, literal_value(shape));
  if (!elided_) return out;
  // One elided part makes the whole value meaningless: the pattern fills all of it, so that it
  // prints as {...} again.
  HEDDLE_RETURN_IF_ERROR(count_textless_bytes(shape, at));
  HEDDLE_ASSIGN_OR_RETURN(out, Literal::make(shape));
  fill_leaves(out);
  return out;
}

Status Parser::count_textless_bytes(const Shape& shape, size_t at) {
  textless_bytes_ += std::min(shape.bytes(), kMaxTextlessBytes + 1);
  if (textless_bytes_ <= kMaxTextlessBytes) return {};
  return lexer_.error_at(at, "constants without their elements take more than {} bytes",
                         kMaxTextlessBytes);
}

// {...}: literal() fills in the value, once its size has been checked.
bool Parser::accept_elided() {
  Lexer ahead = lexer_;
  if (!ahead.accept('{') || !ahead.accept("...") || !ahead.accept('}')) return false;
  lexer_ = ahead;
  elided_ = true;
  return true;
}

Result<Literal> Parser::literal_value(const Shape& shape) {
  Nesting nesting(*this, 1);
  HEDDLE_RETURN_IF_ERROR(nesting.check());
  if (!shape.is_static())
    return lexer_.error_at(lexer_.offset(), "a literal of shape {} has no fixed size",
                           tensor::to_string(shape, false));
  if (accept_elided()) return Literal();
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    HEDDLE_RETURN_IF_ERROR(lexer_.expect('(', "before the tuple"));
    for (const Shape& element : shape.elements()) {
      lexer_.accept(',');
      HEDDLE_ASSIGN_OR_RETURN(Literal value, literal_value(element));
      elements.push_back(std::move(value));
    }
    lexer_.accept(',');
    HEDDLE_RETURN_IF_ERROR(lexer_.expect(
        ')', fmt::format("after the {} elements of the tuple", shape.elements().size())));
    return Literal::tuple(std::move(elements));
  }
  if (shape.is_array()) return array_literal(shape);
  if (lexer_.accept_word(tensor::type_name(shape.type()))) return Literal(shape);
  return lexer_.unexpected_here(tensor::type_name(shape.type()));
}

Result<Literal> Parser::array_literal(const Shape& shape) {
  const size_t at = lexer_.offset();
  const bool is_braced = lexer_.peek() == '{';
  if (!is_braced && shape.rank() > 0) {
    // XLA reads a bare value as the first element and leaves the rest zero.
    HEDDLE_RETURN_IF_ERROR(count_textless_bytes(shape, at));
    HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(shape));
    if (shape.elems() == 0) return lexer_.unexpected_here("'{' of a literal without elements");
    HEDDLE_RETURN_IF_ERROR(element_value(out, 0));
    return out;
  }
  // Every element takes a character, and so does each separator.
  if (shape.elems() > 0 && shape.elems() - 1 > static_cast<int64_t>(lexer_.rest().size() / 2))
    return lexer_.error_at(at, "the literal has fewer than the {} elements of {}", shape.elems(),
                           tensor::to_string(shape, false));
  HEDDLE_ASSIGN_OR_RETURN(Literal out, Literal::make(shape));
  if (shape.rank() == 0) {
    HEDDLE_RETURN_IF_ERROR(element_value(out, 0));
    return out;
  }
  if (shape.elems() == 0) {
    HEDDLE_RETURN_IF_ERROR(skip_empty_braces());
    return out;
  }
  HEDDLE_RETURN_IF_ERROR(braced_elements(out));
  return out;
}

// Braces, one level per dimension: counts[d] is the number of items so far in the open group of
// level d. Commas may be anywhere.
Status Parser::braced_elements(Literal& out) {
  const Shape& shape = out.shape();
  std::vector<int64_t> counts;
  const auto rank = static_cast<size_t>(shape.rank());
  int64_t next = 0;
  auto enter = [&]() -> Status {  // one more item at the innermost open level
    if (counts.empty()) return {};
    const auto d = static_cast<int64_t>(counts.size()) - 1;
    if (++counts.back() <= shape.dim(d)) return {};
    return lexer_.error_at(lexer_.offset(), "the literal has more than {} items in dimension {}",
                           shape.dim(d), d);
  };
  do {
    while (lexer_.accept(',')) {
    }
    const char c = lexer_.peek();
    if (c == '{' && counts.size() < rank) {
      HEDDLE_RETURN_IF_ERROR(enter());
      lexer_.accept('{');
      counts.push_back(0);
    } else if (c == '}' && !counts.empty()) {
      const auto d = static_cast<int64_t>(counts.size()) - 1;
      if (counts.back() != shape.dim(d))
        return lexer_.error_at(lexer_.offset(),
                               "the literal has {} items in dimension {}, wanted {}", counts.back(),
                               d, shape.dim(d));
      lexer_.accept('}');
      counts.pop_back();
    } else if (counts.size() == rank) {
      HEDDLE_RETURN_IF_ERROR(enter());
      HEDDLE_RETURN_IF_ERROR(element_value(out, next++));
    } else {
      return lexer_.unexpected_here(fmt::format("'{{' of dimension {} of the literal of {}",
                                                counts.size(), tensor::to_string(shape, false)));
    }
  } while (!counts.empty());
  return {};
}

// An array without elements: any braces that close.
Status Parser::skip_empty_braces() {
  int64_t depth = 0;
  do {
    while (lexer_.accept(',')) {
    }
    if (lexer_.accept('{')) {
      ++depth;
    } else if (depth > 0 && lexer_.accept('}')) {
      --depth;
    } else {
      return lexer_.unexpected_here("the braces of an array without elements");
    }
  } while (depth > 0);
  return {};
}

Status Parser::element_value(Literal& out, int64_t i) {
  const Type type = out.type();
  if (tensor::is_float(type)) {
    HEDDLE_ASSIGN_OR_RETURN(const uint64_t bits, float_bits(type));
    out.set_bits(i, bits);
    return {};
  }
  if (!tensor::is_complex(type)) {
    HEDDLE_ASSIGN_OR_RETURN(const uint64_t bits, integer_bits(type));
    out.set_bits(i, bits);
    return {};
  }
  const Type part = tensor::complex_component(type);
  const bool is_pair = lexer_.accept('(');
  uint64_t bits[2] = {0, 0};
  HEDDLE_ASSIGN_OR_RETURN(bits[0], float_bits(part));
  if (is_pair) {
    lexer_.accept(',');
    HEDDLE_ASSIGN_OR_RETURN(bits[1], float_bits(part));
    HEDDLE_RETURN_IF_ERROR(lexer_.expect(')', "after the complex number"));
  }
  // Not through set_complex, which would not keep the bits of a NaN.
  const int64_t part_bytes = tensor::type_bytes(part);
  auto* data = static_cast<char*>(out.mutable_data()) + 2 * i * part_bytes;
  for (int p = 0; p < 2; ++p) std::memcpy(data + p * part_bytes, &bits[p], part_bytes);
  return {};
}

Result<uint64_t> Parser::float_bits(Type type) {
  const size_t at = lexer_.offset();
  const std::string_view token = number_token(lexer_.rest());
  const bool negative = token.starts_with('-');
  const std::string_view magnitude = token.substr(negative ? 1 : 0);
  if (magnitude.empty()) return lexer_.unexpected_here("a number");
  if (magnitude == "nan") {
    lexer_.advance(token.size());
    return nan_bits(type, negative);
  }
  if (magnitude == "inf") {
    const FloatFormat& format = tensor::float_format(type);
    if (!format.has_infinity && !format.has_nan)
      return lexer_.error_at(at, "{} has no infinity", tensor::type_name(type));
    lexer_.advance(token.size());
    return tensor::float_to_bits(type, negative ? -HUGE_VAL : HUGE_VAL);
  }
  if (is_ident_start(magnitude[0])) {  // not infinity, nan(…): from_chars takes them too
    if (magnitude != "true" && magnitude != "false") return lexer_.unexpected_here("a number");
    lexer_.advance(token.size());
    return tensor::float_to_bits(type, magnitude == "true" ? 1 : 0);
  }
  uint64_t bits = 0;
  bool in_range = true;
  if (type == Type::f32) {
    const std::optional<float> value = to_float<float>(token);
    if (!value) return lexer_.unexpected_here("a number");
    in_range = std::isfinite(*value);
    bits = bits_of(*value);
  } else {
    const std::optional<double> value = to_float<double>(token);
    if (!value) return lexer_.unexpected_here("a number");
    bits = type == Type::f64 ? bits_of(*value) : tensor::float_to_bits(type, *value);
    in_range = std::isfinite(*value) && rounds_to_finite(type, *value, bits);
  }
  if (!in_range)
    return lexer_.error_at(at, "{} is out of the range of {}", token, tensor::type_name(type));
  lexer_.advance(token.size());
  return bits;
}

// After `nan`: an optional payload.
Result<uint64_t> Parser::nan_bits(Type type, bool negative) {
  const FloatFormat& format = tensor::float_format(type);
  uint64_t bits = tensor::float_to_bits(type, std::nan(""));
  const size_t at = lexer_.offset();
  if (lexer_.next_is('(')) {
    lexer_.advance(1);
    const std::string_view token = number_token(lexer_.rest());
    uint64_t payload = 0;
    const char* last = token.data() + token.size();
    if (!token.starts_with("0x")) return lexer_.unexpected_here("a payload 0x… of the NaN");
    const auto end = std::from_chars(token.data() + 2, last, payload, 16);
    const uint64_t mask = (uint64_t{1} << format.mantissa_bits) - 1;
    if (end.ec != std::errc() || end.ptr != last || payload == 0 || payload > mask)
      return lexer_.error_at(at, "{} is not a payload of a NaN of {}", token,
                             tensor::type_name(type));
    lexer_.advance(token.size());
    HEDDLE_RETURN_IF_ERROR(lexer_.expect(')', "after the payload"));
    // Formats without an infinity have one NaN only.
    if (format.has_infinity) {
      const uint64_t exponent = (uint64_t{1} << format.exponent_bits) - 1;
      bits = exponent << format.mantissa_bits | payload;
    }
  }
  if (!format.has_nan) return lexer_.error_at(at, "{} has no NaN", tensor::type_name(type));
  const uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
  if (format.has_sign && format.has_negative_zero) bits = negative ? bits | sign : bits & ~sign;
  return bits;
}

Result<uint64_t> Parser::integer_bits(Type type) {
  const size_t at = lexer_.offset();
  const std::string_view token = number_token(lexer_.rest());
  if (token == "true" || token == "false") {
    lexer_.advance(token.size());
    return token == "true" ? 1 : 0;
  }
  const bool negative = token.starts_with('-');
  const std::string_view digits = token.substr(negative ? 1 : 0);
  uint64_t magnitude = 0;
  const char* last = digits.data() + digits.size();
  const auto end = std::from_chars(digits.data(), last, magnitude);
  if (end.ec == std::errc::invalid_argument || end.ptr != last)
    return lexer_.unexpected_here(fmt::format("a number of {}", tensor::type_name(type)));
  const int bits = tensor::type_bits(type);
  const bool is_signed = tensor::is_signed_integer(type);
  uint64_t most = ~uint64_t{0} >> (64 - bits);
  if (is_signed) most = (most >> 1) + (negative ? 1 : 0);
  if (end.ec != std::errc() || magnitude > most || (negative && !is_signed && magnitude != 0))
    return lexer_.error_at(at, "{} is out of the range of {}", token, tensor::type_name(type));
  lexer_.advance(token.size());
  return negative ? ~magnitude + 1 : magnitude;
}

}  // namespace heddle::hlo
