// MLIR text: attributes.
#include <algorithm>
#include <array>
#include <charconv>

#include "import/mlir_parser.h"

namespace heddle::import {
namespace {

using Kind = MlirAttr::Kind;

// Attributes `#stablehlo.<name><field = value, ...>` that are parsed; the others are kept as text.
constexpr std::array<std::string_view, 8> kWithFields = {
    "gather",        "scatter",        "dot",
    "ragged_dot",    "channel_handle", "output_operand_alias",
    "dot_algorithm", "result_accuracy"};

bool is_our_dialect(std::string_view dialect) {
  return dialect == "stablehlo" || dialect == "chlo" || dialect == "mhlo";
}

}  // namespace

MlirAttr MlirParser::attribute(bool typed) {
  const Level level(this);
  MlirAttr attr;
  switch (token().kind) {
    case MlirTokenKind::integer:
    case MlirTokenKind::floating:
      return number_attribute(typed);
    case MlirTokenKind::string:
      attr.kind = Kind::string;
      attr.text = unescape_mlir(token().text);
      lexer_.next();
      if (typed && take(":")) attr.type = type();
      return attr;
    case MlirTokenKind::symbol:
      return symbol_attribute();
    case MlirTokenKind::attr:
      return hash_attribute();
    default:
      break;
  }
  if (is("-")) return number_attribute(typed);
  if (is("[")) return array_attribute();
  if (is("{")) {
    attr.kind = Kind::dictionary;
    dictionary(attr.fields);
    return attr;
  }
  if (is("true") || is("false")) {
    attr.kind = Kind::boolean;
    attr.integer = is("true") ? 1 : 0;
    lexer_.next();
    return attr;
  }
  if (take("unit")) return attr;
  if (take("array")) return typed_array();
  if (take("dense")) return dense();
  if (take("dense_resource")) return dense_resource();
  if (is("loc")) {
    attr.kind = Kind::other;
    attr.text = location_text();
    return attr;
  }
  if (is("affine_map") || is("sparse") || is("opaque") || is("strided")) {
    attr.kind = Kind::other;
    attr.text = std::string(token().text);
    lexer_.next();
    if (is("<")) lexer_.go_to(lexer_.behind_bracket(token().begin));
    if (typed && take(":")) attr.type = type();
    return attr;
  }
  if (!is(MlirTokenKind::word) && !is(MlirTokenKind::type) && !is("("))
    lexer_.fail_wanted("an attribute");
  attr.kind = Kind::type;
  attr.type = type();
  return attr;
}

// 1 : i64, -2.5 : f32, 0x7FC0 : bf16 (bits of a floating-point type)
MlirAttr MlirParser::number_attribute(bool typed) {
  const bool negative = take("-");
  const MlirToken number = token();
  MlirAttr attr;
  if (is(MlirTokenKind::floating)) {
    attr.kind = Kind::floating;
    attr.type.kind = MlirType::Kind::scalar;
    attr.type.element = tensor::Type::f64;
    attr.floating = (negative ? -1 : 1) * this->number();
  } else {
    const std::string_view text = expect(MlirTokenKind::integer, "a number");
    const bool hex = text.starts_with("0x");
    const char* const begin = text.data() + (hex ? 2 : 0);
    uint64_t bits = 0;
    const auto [end, error] =
        std::from_chars(begin, text.data() + text.size(), bits, hex ? 16 : 10);
    if (error != std::errc() || end != text.data() + text.size())
      lexer_.fail_at(number.begin, "{} is no number of 64 bits", quoted(text));
    attr = integer_attr(static_cast<int64_t>(negative ? 0 - bits : bits));
    attr.type.kind = MlirType::Kind::scalar;
    attr.type.element = tensor::Type::s64;
  }
  if (!typed || !take(":")) return attr;
  attr.type = type();
  const bool is_float =
      attr.type.kind == MlirType::Kind::scalar && tensor::is_float(attr.type.element);
  if (is_float && attr.kind == Kind::integer) {
    attr.kind = Kind::floating;
    attr.floating =
        number.text.starts_with("0x")
            ? tensor::float_from_bits(attr.type.element, static_cast<uint64_t>(attr.integer))
            : static_cast<double>(attr.integer);
  } else if (is_float && attr.kind == Kind::floating) {  // rounds to its type
    attr.floating = tensor::float_from_bits(
        attr.type.element, tensor::float_to_bits(attr.type.element, attr.floating));
  }
  return attr;
}

MlirAttr MlirParser::array_attribute() {
  MlirAttr attr;
  attr.kind = Kind::array;
  list("[", "]", [&] { attr.elements.push_back(attribute()); });
  return attr;
}

// After `array`: <i64: 1, 2>, <i1: true>
MlirAttr MlirParser::typed_array() {
  MlirAttr attr;
  attr.kind = Kind::array;
  expect("<");
  attr.type = type();
  if (take(":")) {
    do attr.elements.push_back(attribute(false));
    while (take(","));
  }
  expect(">");
  return attr;
}

// @module::@name
MlirAttr MlirParser::symbol_attribute() {
  MlirAttr attr;
  attr.kind = Kind::symbol;
  attr.text = unescape_mlir(expect(MlirTokenKind::symbol, "a symbol"));
  while (is(":") && lexer_.at(token().end) == ':' && lexer_.at(token().end + 1) == '@') {
    lexer_.next();
    lexer_.next();
    attr.text += "::" + unescape_mlir(expect(MlirTokenKind::symbol, "a symbol"));
  }
  return attr;
}

// #alias, #dialect.name, #dialect.name<...>, #dialect<name ...>
MlirAttr MlirParser::hash_attribute() {
  const size_t at = token().begin;
  const std::string name(token().text);
  lexer_.next();
  if (const auto found = attr_aliases_.find(name); found != attr_aliases_.end())
    return found->second;
  MlirAttr attr;
  attr.kind = Kind::other;
  attr.text = name;
  const size_t dot = name.find('.');
  const std::string_view dialect = std::string_view(name).substr(0, dot);
  if (!is("<")) {
    // Locations may be used before they are defined: their definitions are at the end.
    if (dot == std::string::npos && !name.starts_with("loc"))
      lexer_.fail_at(at, "attribute #{} is not defined before its use", name);
    return attr;
  }
  const size_t end = lexer_.behind_bracket(token().begin);
  if (is_our_dialect(dialect)) {
    if (dot == std::string::npos) {  // #stablehlo<comparison_direction EQ>
      lexer_.next();
      attr.kind = Kind::dialect;
      attr.text = std::string(expect(MlirTokenKind::word, "an attribute's name"));
      if (is(MlirTokenKind::word)) {
        MlirAttr& word = attr.elements.emplace_back();
        word.kind = Kind::string;
        word.text = std::string(token().text);
      }
    } else {
      attr.text = name.substr(dot + 1);
      dialect_body(attr);
    }
  }
  lexer_.go_to(end);
  return attr;
}

void MlirParser::dialect_body(MlirAttr& attr) {
  if (attr.text == "conv") {
    attr.kind = Kind::dialect;
    expect("<");
    convolution_dims(attr);
    expect(">");
    return;
  }
  if (std::find(kWithFields.begin(), kWithFields.end(), attr.text) == kWithFields.end()) {
    lexer_.next();
    MlirAttr word;
    word.kind = Kind::string;
    word.text = std::string(token().text);
    if (is(MlirTokenKind::word) && lexer_.at(token().end) == '>') attr.kind = Kind::dialect;
    attr.elements.push_back(std::move(word));
    return;
  }
  attr.kind = Kind::dialect;
  expect("<");
  if (is(">")) return;
  do {
    std::string name(expect(MlirTokenKind::word, "a field"));
    expect("=");
    MlirAttr value = attribute(false);
    attr.fields.emplace_back(std::move(name), std::move(value));
  } while (take(",") && !is(">"));
  if (!is(">")) lexer_.fail_wanted("`,` or `>`");
}

// [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
void MlirParser::convolution_dims(MlirAttr& attr) {
  struct Side {
    std::string_view first, second;  // letters
    std::string_view first_name, second_name, spatial_name;
  };
  constexpr std::array kSides = {
      Side{"b", "f", "input_batch_dimension", "input_feature_dimension",
           "input_spatial_dimensions"},
      Side{"i", "o", "kernel_input_feature_dimension", "kernel_output_feature_dimension",
           "kernel_spatial_dimensions"},
      Side{"b", "f", "output_batch_dimension", "output_feature_dimension",
           "output_spatial_dimensions"}};
  for (size_t i = 0; i < kSides.size(); ++i) {
    const Side& side = kSides[i];
    if (i == 1) expect("x");
    if (i == 2) expect("->");
    const size_t at = token().begin;
    int64_t position = 0, first = -1, second = -1;
    std::vector<std::pair<int64_t, int64_t>> spatial;  // number, position
    list("[", "]", [&] {
      if (take(side.first)) {
        first = position;
      } else if (take(side.second)) {
        second = position;
      } else if (!take("?")) {
        spatial.emplace_back(expect_integer(), position);
      }
      ++position;
    });
    std::sort(spatial.begin(), spatial.end());
    for (size_t k = 0; k < spatial.size(); ++k)
      if (spatial[k].first != static_cast<int64_t>(k))
        lexer_.fail_at(at, "spatial dimensions, wanted 0 to {}, each once", spatial.size() - 1);
    if (first < 0 || second < 0)
      lexer_.fail_at(at, "wanted dimensions `{}` and `{}`", side.first, side.second);
    attr.fields.emplace_back(side.first_name, integer_attr(first));
    attr.fields.emplace_back(side.second_name, integer_attr(second));
    MlirAttr dims;
    dims.kind = Kind::array;
    for (const auto& [number, at_dim] : spatial) dims.elements.push_back(integer_attr(at_dim));
    attr.fields.emplace_back(side.spatial_name, std::move(dims));
  }
}

// {name = value, name, "name" = value}
void MlirParser::dictionary(std::vector<std::pair<std::string, MlirAttr>>& fields) {
  const Level level(this);
  list("{", "}", [&] {
    std::string name;
    if (is(MlirTokenKind::string)) {
      name = unescape_mlir(token().text);
      lexer_.next();
    } else {
      name = std::string(expect(MlirTokenKind::word, "an attribute's name"));
    }
    MlirAttr value;
    if (take("=")) value = attribute();
    fields.emplace_back(std::move(name), std::move(value));
  });
}

void MlirParser::optional_dictionary(MlirOp& op) {
  if (is("{")) dictionary(op.attrs);
}

}  // namespace heddle::import
