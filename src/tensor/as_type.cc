// Converts values to a type named by a file or a command line, and parses literals.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "tensor/limits.h"
#include "tensor/npz.h"

namespace heddle::tensor {
namespace {

// Types that numpy lacks, so that they are stored as raw bytes.
bool is_raw_in_npz(Type type) {
  if (type == Type::bf16) return true;
  return is_array_type(type) && type_bytes(type) == 1 && type != Type::pred && type != Type::s8 &&
         type != Type::u8;
}

// A narrow element fills the low bits of its byte; the high ones are zeros or copies of the sign.
Status normalize_narrow(Literal& literal) {
  int bits = type_bits(literal.type());
  if (bits >= 8) return {};
  auto mask = static_cast<uint8_t>((1u << bits) - 1);
  bool sign_extend = is_signed_integer(literal.type());
  auto values = literal.mutable_values<uint8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    auto zero_extended = static_cast<uint8_t>(values[i] & mask);
    auto ones = static_cast<uint8_t>(zero_extended | ~mask);
    bool negative = zero_extended >> (bits - 1);
    if (values[i] != zero_extended && !(negative && values[i] == ones)) {
      return user_error("element {}: byte {:#04x} is not of type {}; wanted one element a byte", i,
                        values[i], type_name(literal.type()));
    }
    values[i] = sign_extend && negative ? ones : zero_extended;
  }
  return {};
}

std::string_view take_until(std::string_view& text, std::string_view stops) {
  size_t end = std::min(text.find_first_of(stops), text.size());
  std::string_view result = text.substr(0, end);
  text.remove_prefix(end);
  return result;
}

void skip_separators(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" ,\t\n"), text.size()));
}

Result<double> parse_float(std::string_view word) {
  double value = 0;
  std::string_view digits = word;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.starts_with('+') || end != digits.data() + digits.size() ||
      error == std::errc::invalid_argument) {
    return user_error("'{}' is not a number", word);
  }
  if (error != std::errc()) return user_error("{} is beyond the range of f64", word);
  return value;
}

template <typename T>
Result<T> parse_integer(std::string_view word) {
  T value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) {
    return user_error("'{}' is not an integer", word);
  }
  if (error != std::errc()) return user_error("{} does not fit in 64 bits", word);
  return value;
}

Status set_integer(Literal& literal, int64_t i, std::string_view word) {
  int bits = type_bits(literal.type());
  if (is_unsigned_integer(literal.type())) {
    HEDDLE_ASSIGN_OR_RETURN(uint64_t value, parse_integer<uint64_t>(word));
    if (bits < 64 && value >> bits != 0)
      return user_error("{} does not fit in {}", word, type_name(literal.type()));
    literal.set_s64(i, static_cast<int64_t>(value));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(int64_t value, parse_integer<int64_t>(word));
    if (value >> (bits - 1) != 0 && value >> (bits - 1) != -1)
      return user_error("{} does not fit in {}", word, type_name(literal.type()));
    literal.set_s64(i, value);
  }
  return {};
}

// A finite word must stay finite: 1e10 is no f16.
Result<double> parse_float_of(Type type, std::string_view word) {
  HEDDLE_ASSIGN_OR_RETURN(double value, parse_float(word));
  if (std::isfinite(value) && !std::isfinite(float_from_bits(type, float_to_bits(type, value)))) {
    return user_error("{} does not fit in {}", word, type_name(type));
  }
  return value;
}

Status set_complex(Literal& literal, int64_t i, std::string_view& text) {
  Type part = complex_component(literal.type());
  if (!text.starts_with('(')) {
    HEDDLE_ASSIGN_OR_RETURN(double re, parse_float_of(part, take_until(text, " ,\t\n")));
    literal.set_complex(i, re);
    return {};
  }
  text.remove_prefix(1);
  skip_separators(text);
  HEDDLE_ASSIGN_OR_RETURN(double re, parse_float_of(part, take_until(text, " ,)")));
  skip_separators(text);
  HEDDLE_ASSIGN_OR_RETURN(double im, parse_float_of(part, take_until(text, " ,)")));
  skip_separators(text);
  if (!text.starts_with(')')) return user_error("complex value without ')'; wanted (re,im)");
  text.remove_prefix(1);
  literal.set_complex(i, {re, im});
  return {};
}

// Parses one value from the front of `text`.
Status set_element(Literal& literal, int64_t i, std::string_view& text) {
  Type type = literal.type();
  if (is_complex(type)) return set_complex(literal, i, text);
  std::string_view word = take_until(text, " ,\t\n");
  if (is_float(type)) {
    HEDDLE_ASSIGN_OR_RETURN(double value, parse_float_of(type, word));
    literal.set_f64(i, value);
  } else if (type == Type::pred) {
    if (word != "0" && word != "1" && word != "true" && word != "false") {
      return user_error("'{}' is not a pred; wanted true, false, 1 or 0", word);
    }
    literal.set_s64(i, word == "1" || word == "true");
  } else {
    return set_integer(literal, i, word);
  }
  return {};
}

Result<Shape> parse_spec_shape(std::string_view text) {
  std::vector<int64_t> dims;
  for (;;) {
    std::string_view word = take_until(text, "x");
    if (text.empty()) {
      auto type = type_from_name(word);
      if (!type || !is_array_type(*type)) {
        return user_error("'{}' is not an element type; wanted such as f32, s32, pred", word);
      }
      if (!checked_product(dims)) return user_error("the extents overflow 64 bits");
      return Shape::array(*type, dims);
    }
    HEDDLE_ASSIGN_OR_RETURN(int64_t dim, parse_integer<int64_t>(word));
    if (dim < 0) return user_error("extent {} is negative", dim);
    dims.push_back(dim);
    if (static_cast<int64_t>(dims.size()) > kMaxRank)
      return user_error("more than {} dimensions", kMaxRank);
    text.remove_prefix(1);
  }
}

Result<Literal> parse_values(const Shape& shape, std::string_view text) {
  // A command line holds few values; this bounds the size filled by a single value.
  constexpr int64_t kMaxBytes = int64_t{1} << 32;
  if (shape.bytes() > kMaxBytes) {
    return user_error("{} is larger than {} bytes; give an .npy file", to_string(shape), kMaxBytes);
  }
  HEDDLE_ASSIGN_OR_RETURN(Literal one, Literal::make(Shape::scalar(shape.type())));
  HEDDLE_ASSIGN_OR_RETURN(Literal literal, Literal::make(shape));
  auto bytes = static_cast<size_t>(type_bytes(shape.type()));
  auto* data = static_cast<char*>(literal.mutable_data());
  int64_t count = 0;
  for (skip_separators(text); !text.empty(); skip_separators(text)) {
    HEDDLE_RETURN_IF_ERROR(set_element(one, 0, text));
    if (count < shape.elems()) std::memcpy(data + count * bytes, one.data(), bytes);
    ++count;
  }
  if (count == 1) {
    for (int64_t i = 1; i < shape.elems(); ++i) std::memcpy(data + i * bytes, one.data(), bytes);
  } else if (count != shape.elems()) {
    return user_error("{} values, wanted {} or one that fills", count, shape.elems());
  }
  return literal;
}

}  // namespace

Result<Literal> as_type(const Literal& literal, Type type) {
  if (literal.type() == type) return literal;
  bool same_width = (literal.type() == Type::u8 || literal.type() == Type::u16) &&
                    is_array_type(type) && type_bytes(type) == type_bytes(literal.type());
  if (!same_width || !is_raw_in_npz(type)) {
    return user_error("got {}, wanted {}; convert the array with astype", type_name(literal.type()),
                      type_name(type));
  }
  Shape shape = literal.shape();
  shape.set_type(type);
  HEDDLE_ASSIGN_OR_RETURN(Literal result, Literal::make(shape));
  if (literal.bytes() > 0) {
    std::memcpy(result.mutable_data(), literal.data(), static_cast<size_t>(literal.bytes()));
  }
  HEDDLE_RETURN_IF_ERROR(normalize_narrow(result));
  return result;
}

Result<Literal> parse_literal_spec(const std::string& spec) {
  size_t equals = spec.find('=');
  if (equals == std::string::npos) {
    return user_error("'{}': no '='; wanted such as 2x2xf32=1 2 3 4, or F.npy", spec.substr(0, 60));
  }
  std::string shape_text = spec.substr(0, equals);
  auto shape = parse_spec_shape(shape_text);
  if (!shape) return error_in("'" + shape_text.substr(0, 60) + "'", shape.error());
  auto literal = parse_values(*shape, std::string_view(spec).substr(equals + 1));
  if (!literal) return error_in("'" + shape_text.substr(0, 60) + "'", literal.error());
  return literal;
}

}  // namespace heddle::tensor
