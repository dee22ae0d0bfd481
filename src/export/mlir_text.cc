#include "export/mlir_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace heddle::exports {
namespace {

using tensor::Literal;
using tensor::Type;

// Longer lists are written as bytes.
constexpr int64_t kMostListed = 16;

struct TypeName {
  Type type;
  std::string_view name;
};
// Exceptions: other names are those of HLO text, with `i` or `ui` for `s` and `u`.
constexpr TypeName kNames[] = {
    {Type::pred, "i1"},
    {Type::f8e5m2, "f8E5M2"},
    {Type::f8e4m3, "f8E4M3"},
    {Type::f8e4m3fn, "f8E4M3FN"},
    {Type::f8e4m3b11fnuz, "f8E4M3B11FNUZ"},
    {Type::f8e3m4, "f8E3M4"},
    {Type::f8e5m2fnuz, "f8E5M2FNUZ"},
    {Type::f8e4m3fnuz, "f8E4M3FNUZ"},
    {Type::f8e8m0fnu, "f8E8M0FNU"},
    {Type::f6e3m2fn, "f6E3M2FN"},
    {Type::f6e2m3fn, "f6E2M3FN"},
    {Type::f4e2m1fn, "f4E2M1FN"},
    {Type::c64, "complex<f32>"},
    {Type::c128, "complex<f64>"},
};

// MLIR requires a decimal point; non-finite values and narrow formats are written by their bits.
std::string real_text(Type type, uint64_t bits, double value) {
  if (!std::isfinite(value) || (type != Type::f32 && type != Type::f64 && value != 0))
    return fmt::format("0x{:0{}X}", bits, std::max(1, (tensor::type_bits(type) + 3) / 4));
  std::string text =
      type == Type::f32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find('.') != std::string::npos) return text;
  const size_t e = text.find('e');
  return text.insert(e == std::string::npos ? text.size() : e, ".0");
}

std::string element_text(const Literal& literal, int64_t i) {
  const Type type = literal.type();
  if (type == Type::pred) return literal.get_s64(i) != 0 ? "true" : "false";
  if (tensor::is_unsigned_integer(type))
    return fmt::to_string(static_cast<uint64_t>(literal.get_s64(i)));
  if (tensor::is_integer(type)) return fmt::to_string(literal.get_s64(i));
  if (tensor::is_complex(type)) {
    const std::complex<double> value = literal.get_complex(i);
    const Type part = tensor::complex_component(type);
    const auto text = [&](double v) { return real_text(part, tensor::float_to_bits(part, v), v); };
    return fmt::format("({}, {})", text(value.real()), text(value.imag()));
  }
  return real_text(type, literal.get_bits(i), literal.get_f64(i));
}

bool all_equal(const Literal& literal) {
  const int64_t each = tensor::type_bytes(literal.type());
  const char* data = static_cast<const char*>(literal.data());
  return std::equal(data, data + literal.bytes() - each, data + each);
}

std::string nested(const Literal& literal, size_t dim, int64_t& next) {
  if (dim == static_cast<size_t>(literal.shape().rank())) return element_text(literal, next++);
  std::string out = "[";
  for (int64_t i = 0; i < literal.shape().dim(static_cast<int64_t>(dim)); ++i)
    out += (i > 0 ? ", " : "") + nested(literal, dim + 1, next);
  return out + "]";
}

}  // namespace

std::string element_type(Type type) {
  for (const TypeName& row : kNames)
    if (row.type == type) return std::string(row.name);
  std::string name(tensor::type_name(type));
  if (tensor::is_signed_integer(type)) name[0] = 'i';
  if (tensor::is_unsigned_integer(type)) name.insert(1, "i");
  return name;
}

std::string value_type(const tensor::Shape& shape) {
  if (!shape.is_array()) return "!stablehlo.token";
  std::string text = "tensor<";
  for (const tensor::Dim& dim : shape.dims()) text += fmt::format("{}x", dim.size);
  return text + element_type(shape.type()) + ">";
}

std::string dense(const Literal& literal) {
  if (literal.elems() == 0) return "dense<>";
  // Types that take whole bytes in MLIR too.
  const bool in_bytes = tensor::type_bits(literal.type()) >= 8;
  if (all_equal(literal)) return fmt::format("dense<{}>", element_text(literal, 0));
  if (literal.elems() <= kMostListed || !in_bytes) {
    int64_t next = 0;
    return fmt::format("dense<{}>", nested(literal, 0, next));
  }
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const auto* bytes = static_cast<const unsigned char*>(literal.data());
  std::string out = "dense<\"0x";
  out.reserve(static_cast<size_t>(literal.bytes()) * 2 + 16);
  for (int64_t i = 0; i < literal.bytes(); ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out + "\">";
}

std::string array_of(const std::vector<int64_t>& numbers) {
  return numbers.empty() ? "array<i64>" : fmt::format("array<i64: {}>", fmt::join(numbers, ", "));
}

std::string brackets(const std::vector<int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string pairs_of(const std::vector<std::pair<int64_t, int64_t>>& rows) {
  if (rows.empty()) return "dense<> : tensor<0x2xi64>";
  std::vector<std::string> texts;
  for (const auto& [low, high] : rows) texts.push_back(fmt::format("[{}, {}]", low, high));
  return fmt::format("dense<[{}]> : tensor<{}x2xi64>", fmt::join(texts, ", "), rows.size());
}

}  // namespace heddle::exports
