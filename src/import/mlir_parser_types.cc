// MLIR text: types.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "import/mlir_parser.h"

namespace heddle::import {
namespace {

using tensor::Type;

struct ElementName {
  std::string_view name;
  Type type;
};
constexpr std::array kElements = {
    ElementName{"i1", Type::pred},
    ElementName{"i2", Type::s2},
    ElementName{"i4", Type::s4},
    ElementName{"i8", Type::s8},
    ElementName{"i16", Type::s16},
    ElementName{"i32", Type::s32},
    ElementName{"i64", Type::s64},
    ElementName{"si8", Type::s8},
    ElementName{"si16", Type::s16},
    ElementName{"si32", Type::s32},
    ElementName{"si64", Type::s64},
    ElementName{"ui2", Type::u2},
    ElementName{"ui4", Type::u4},
    ElementName{"ui8", Type::u8},
    ElementName{"ui16", Type::u16},
    ElementName{"ui32", Type::u32},
    ElementName{"ui64", Type::u64},
    ElementName{"index", Type::s64},
    ElementName{"f16", Type::f16},
    ElementName{"bf16", Type::bf16},
    ElementName{"tf32", Type::f32},
    ElementName{"f32", Type::f32},
    ElementName{"f64", Type::f64},
    ElementName{"f4E2M1FN", Type::f4e2m1fn},
    ElementName{"f6E2M3FN", Type::f6e2m3fn},
    ElementName{"f6E3M2FN", Type::f6e3m2fn},
    ElementName{"f8E3M4", Type::f8e3m4},
    ElementName{"f8E4M3", Type::f8e4m3},
    ElementName{"f8E4M3FN", Type::f8e4m3fn},
    ElementName{"f8E4M3FNUZ", Type::f8e4m3fnuz},
    ElementName{"f8E4M3B11FNUZ", Type::f8e4m3b11fnuz},
    ElementName{"f8E5M2", Type::f8e5m2},
    ElementName{"f8E5M2FNUZ", Type::f8e5m2fnuz},
    ElementName{"f8E8M0FNU", Type::f8e8m0fnu},
};

}  // namespace

const Type* find_mlir_element(std::string_view name) {
  for (const ElementName& element : kElements)
    if (element.name == name) return &element.type;
  return nullptr;
}

MlirType parse_mlir_type(std::string_view text) { return MlirParser(text, 1).parse_type(); }

MlirType MlirParser::parse_type() {
  MlirType result = type();
  if (!is(MlirTokenKind::end)) lexer_.fail_wanted("the end of the type");
  return result;
}

std::vector<MlirType> MlirParser::type_list() {
  std::vector<MlirType> types;
  list("(", ")", [&] { types.push_back(type()); });
  return types;
}

std::vector<MlirType> MlirParser::result_types() {
  if (is("(")) return type_list();
  std::vector<MlirType> types;
  types.push_back(type());
  return types;
}

MlirType MlirParser::type() {
  const Level level(this);
  MlirType result;
  if (is(MlirTokenKind::type)) return dialect_type();
  if (is("(")) {
    result.kind = MlirType::Kind::function;
    result.elements = type_list();
    expect("->");
    result.results = result_types();
    return result;
  }
  const size_t at = token().begin;
  const std::string_view word = expect(MlirTokenKind::word, "a type");
  if (const Type* element = find_mlir_element(word)) {
    result.kind = MlirType::Kind::scalar;
    result.element = *element;
    return result;
  }
  if (word == "none") return result;
  if (word == "tensor") return tensor_type();
  if (word == "complex") {
    expect("<");
    const MlirType part = type();
    expect(">");
    if (part.kind != MlirType::Kind::scalar ||
        (part.element != Type::f32 && part.element != Type::f64))
      lexer_.fail_at(at, "complex: got parts {}, wanted f32 or f64", to_string(part));
    result.kind = MlirType::Kind::scalar;
    result.element = part.element == Type::f32 ? Type::c64 : Type::c128;
    return result;
  }
  if (word == "tuple") {
    result.kind = MlirType::Kind::tuple;
    list("<", ">", [&] { result.elements.push_back(type()); });
    return result;
  }
  if (word == "memref" || word == "vector" || (word.size() > 1 && word[0] == 'i')) {
    result.kind = MlirType::Kind::other;
    size_t end = token().begin;
    if (is("<")) end = lexer_.behind_bracket(end);
    result.text = std::string(lexer_.text().substr(at, end - at));
    if (is("<")) lexer_.go_to(end);
    return result;
  }
  lexer_.fail_at(at, "{} is no type that is known", quoted(word));
}

// After `tensor`: <2x?x3xf32, encoding>. Dimensions are read character by character: `2x3xf32` is
// not a sequence of tokens.
MlirType MlirParser::tensor_type() {
  MlirType result;
  result.kind = MlirType::Kind::tensor;
  if (!is("<")) lexer_.fail_wanted("`<`");
  size_t at = lexer_.skip_blank(token().end);
  for (;;) {
    size_t end = at;
    int64_t dim = MlirType::kDynamic;
    if (lexer_.at(at) == '?') {
      ++end;
    } else {
      while (lexer_.at(end) >= '0' && lexer_.at(end) <= '9') ++end;
      if (end == at) break;
      const std::string_view digits = lexer_.text().substr(at, end - at);
      if (std::from_chars(digits.data(), digits.data() + digits.size(), dim).ec != std::errc())
        lexer_.fail_at(at, "dimension {} is too large", quoted(digits));
    }
    end = lexer_.skip_blank(end);
    if (lexer_.at(end) != 'x') lexer_.fail_at(end, "got '{}', wanted `x`", lexer_.at(end));
    result.dims.push_back(dim);
    constexpr size_t kMostDims = 256;
    if (result.dims.size() > kMostDims) lexer_.fail_at(at, "more than {} dimensions", kMostDims);
    at = lexer_.skip_blank(end + 1);
  }
  lexer_.go_to(at);
  const MlirType element = type();
  if (element.kind == MlirType::Kind::other)
    lexer_.fail_at(at, "a tensor of {} is not supported", quoted(element.text));
  if (element.kind != MlirType::Kind::scalar)
    lexer_.fail_at(at, "a tensor of {}, wanted an element type", to_string(element));
  result.element = element.element;
  result.quantization = element.quantization;
  if (take(",")) tensor_encoding(result);
  expect(">");
  return result;
}

// #stablehlo.bounds<16, ?> (older texts: #stablehlo.type_extensions<bounds = [16, ?]>); other
// encodings are ignored.
void MlirParser::tensor_encoding(MlirType& type) {
  const size_t at = token().begin;
  if (!is(MlirTokenKind::attr) ||
      (token().text != "stablehlo.bounds" && token().text != "stablehlo.type_extensions")) {
    attribute();
    return;
  }
  const bool fields = token().text == "stablehlo.type_extensions";
  lexer_.next();
  expect("<");
  if (fields) {
    expect("bounds");
    expect("=");
    expect("[");
  }
  do type.bounds.push_back(take("?") ? MlirType::kDynamic : expect_integer());
  while (take(","));
  if (fields) expect("]");
  expect(">");
  if (type.bounds.size() != type.dims.size())
    lexer_.fail_at(at, "{} bounds of {} dimensions", type.bounds.size(), type.dims.size());
  for (const int64_t bound : type.bounds)
    if (bound < MlirType::kDynamic) lexer_.fail_at(at, "bound {} is negative", bound);
}

MlirType MlirParser::dialect_type() {
  const std::string name(token().text);
  const size_t at = token().begin;
  MlirType result;
  lexer_.next();
  if (name == "quant.uniform") return quantized_type();
  if (name == "stablehlo.token" || name == "mhlo.token") {
    result.kind = MlirType::Kind::token;
    return result;
  }
  if (name == "stablehlo.future") {
    result.kind = MlirType::Kind::future;
    list("<", ">", [&] { result.elements.push_back(type()); });
    return result;
  }
  if (const auto found = type_aliases_.find(name); found != type_aliases_.end())
    return found->second;
  if (name.find('.') == std::string::npos)
    lexer_.fail_at(at, "type alias !{} is not defined before its use", name);
  result.kind = MlirType::Kind::other;
  size_t end = at + 1 + name.size();
  if (is("<")) {
    end = lexer_.behind_bracket(token().begin);
    lexer_.go_to(end);
  }
  result.text = std::string(lexer_.text().substr(at, end - at));
  return result;
}

double MlirParser::number() {
  const bool negative = take("-");
  if (!is(MlirTokenKind::integer) && !is(MlirTokenKind::floating)) lexer_.fail_wanted("a number");
  const std::string text(token().text);
  lexer_.next();
  const double value = std::strtod(text.c_str(), nullptr);
  return negative ? -value : value;
}

// After `!quant.uniform`: <i8<-127:127>:f32:0, {0.1:-30, 0.5}>, <i8:f32, 0.1:2>.
MlirType MlirParser::quantized_type() {
  auto quantization = std::make_shared<Quantization>();
  const size_t at = token().begin;
  expect("<");
  MlirType result;
  // `u8` is used nowhere else in MLIR.
  const std::string_view name = expect(MlirTokenKind::word, "the storage type");
  const Type* storage = find_mlir_element(name.starts_with('u') && !name.starts_with("ui")
                                              ? "ui" + std::string(name.substr(1))
                                              : std::string(name));
  const auto bits = storage == nullptr ? 0 : tensor::type_bits(*storage);
  if (storage == nullptr || !tensor::is_integer(*storage) || bits > 32)
    lexer_.fail_at(at, "quantised storage type {} is not supported", quoted(name));
  const bool is_signed = tensor::is_signed_integer(*storage);
  quantization->minimum = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  quantization->maximum = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  if (take("<")) {
    quantization->minimum = expect_integer();
    expect(":");
    quantization->maximum = expect_integer();
    expect(">");
  }
  expect(":");
  const MlirType expressed = type();
  if (expressed.kind != MlirType::Kind::scalar || !tensor::is_float(expressed.element))
    lexer_.fail_at(at, "quantised type of {}, wanted a floating-point type", to_string(expressed));
  quantization->expressed = expressed.element;
  if (take(":")) {
    if (is("{")) {  // sub-channel: {axis:block, ...}
      const size_t end = lexer_.behind_bracket(token().begin);
      quantization->blocks = std::string(lexer_.text().substr(token().begin, end - token().begin));
      lexer_.go_to(end);
    } else {
      quantization->axis = expect_integer();
    }
  }
  expect(",");
  if (quantization->blocks.empty()) {
    read_scales(*quantization);
  } else {
    lexer_.go_to(is("{") ? lexer_.behind_bracket(token().begin) : token().begin);
  }
  expect(">");
  result.kind = MlirType::Kind::scalar;
  result.element = *storage;
  result.quantization = std::move(quantization);
  return result;
}

void MlirParser::read_scales(Quantization& quantization) {
  const auto one = [&] {
    quantization.scales.push_back(number());
    quantization.zero_points.push_back(take(":") ? expect_integer() : 0);
  };
  if (quantization.axis >= 0) {
    list("{", "}", one);
  } else {
    one();
  }
}

}  // namespace heddle::import
