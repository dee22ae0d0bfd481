// Pretty forms with a special syntax; each gives the attributes of the generic form.
#include <algorithm>

#include "import/mlir_parser.h"
#include "import/mlir_pretty.h"

namespace heddle::import {
namespace {

using Kind = MlirAttr::Kind;

MlirAttr array_of(const std::vector<int64_t>& values) {
  MlirAttr attr;
  attr.kind = Kind::array;
  for (const int64_t value : values) attr.elements.push_back(integer_attr(value));
  return attr;
}

}  // namespace

// {attributes} dense<...> : type, or `value : type` of arith
void MlirParser::constant_form(MlirOp& op) {
  optional_dictionary(op);
  const size_t at = token().begin;
  MlirAttr value = attribute();
  if (!value.is(Kind::dense) && value.type.kind == MlirType::Kind::none)
    lexer_.fail_at(at, "a constant, wanted `dense<...> : type`");
  make_results(op, {value.type});
  op.attrs.emplace_back("value", std::move(value));
}

// EQ, %a, %b, SIGNED
void MlirParser::compare_form(MlirOp& op) {
  op.attrs.emplace_back("comparison_direction", words_to_attr("comparison_direction"));
  expect(",");
  op.operands.push_back(operand());
  expect(",");
  op.operands.push_back(operand());
  if (take(",")) op.attrs.emplace_back("compare_type", words_to_attr("comparison_type"));
  optional_dictionary(op);
}

// %a [0:2, 1:8:3]
void MlirParser::slice_form(MlirOp& op) {
  op.operands.push_back(operand());
  std::vector<int64_t> starts, limits, strides;
  list("[", "]", [&] {
    starts.push_back(expect_integer());
    expect(":");
    limits.push_back(expect_integer());
    strides.push_back(take(":") ? expect_integer() : 1);
  });
  op.attrs.emplace_back("start_indices", array_of(starts));
  op.attrs.emplace_back("limit_indices", array_of(limits));
  op.attrs.emplace_back("strides", array_of(strides));
  optional_dictionary(op);
}

// %a[1]
void MlirParser::element_form(MlirOp& op) {
  op.operands.push_back(operand());
  expect("[");
  op.attrs.emplace_back("index", integer_attr(expect_integer()));
  expect("]");
  optional_dictionary(op);
}

// %a, format = e5m10
void MlirParser::precision_form(MlirOp& op) {
  op.operands.push_back(operand());
  expect(",");
  expect("format");
  expect("=");
  const size_t at = token().begin;
  const std::string_view word = expect(MlirTokenKind::word, "e<bits>m<bits>");
  const size_t m = word.find('m');
  const auto bits = [&](std::string_view digits) {
    int64_t value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9' || value > 1000) lexer_.fail_at(at, "got {}", quoted(word));
      value = value * 10 + (c - '0');
    }
    return value;
  };
  if (word[0] != 'e' || m == std::string_view::npos)
    lexer_.fail_at(at, "got {}, wanted e<bits>m<bits>", quoted(word));
  op.attrs.emplace_back("exponent_bits", integer_attr(bits(word.substr(1, m - 1))));
  op.attrs.emplace_back("mantissa_bits", integer_attr(bits(word.substr(m + 1))));
  optional_dictionary(op);
}

// @f(%a) : (types) -> types
void MlirParser::call_form(MlirOp& op) {
  op.attrs.emplace_back("callee", symbol_attribute());
  expect("(");
  op.operands = operands_until(")");
  optional_dictionary(op);
  generic_types(op);
}

void MlirParser::custom_call_form(MlirOp& op) {
  MlirAttr name = is(MlirTokenKind::string) ? attribute(false) : symbol_attribute();
  name.kind = Kind::string;
  op.attrs.emplace_back("call_target_name", std::move(name));
  expect("(");
  op.operands = operands_until(")");
  optional_dictionary(op);
  generic_types(op);
}

// "name" %a, %b {attributes} : (types) -> types
void MlirParser::composite_form(MlirOp& op) {
  op.attrs.emplace_back(
      "name", attr_of(Kind::string, unescape_mlir(expect(MlirTokenKind::string, "a name"))));
  const bool bracket = take("(");
  while (is(MlirTokenKind::value)) {
    op.operands.push_back(operand());
    if (!take(",")) break;
  }
  if (bracket) expect(")");
  optional_dictionary(op);
  generic_types(op);
}

// %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGH, HIGH]
void MlirParser::dot_form(MlirOp& op, const PrettyForm& form) {
  op.operands.push_back(operand());
  expect(",");
  op.operands.push_back(operand());
  MlirAttr numbers;
  numbers.kind = Kind::dialect;
  numbers.text = "dot";
  while (take(",")) {
    const bool batching = is("batching_dims");
    if (!batching && !is("contracting_dims")) {
      if (is("algorithm")) {  // = <lhs_precision_type = tf32, ...>
        lexer_.next();
        expect("=");
        MlirAttr algorithm = attr_of(Kind::dialect, "dot_algorithm");
        if (is("<")) {
          dialect_body(algorithm);
          expect(">");
        } else {
          algorithm = attribute(false);
        }
        op.attrs.emplace_back("algorithm", std::move(algorithm));
      } else {
        keyword(op, form);
      }
      continue;
    }
    lexer_.next();
    expect("=");
    const std::string suffix = batching ? "batching_dimensions" : "contracting_dimensions";
    numbers.fields.emplace_back("lhs_" + suffix, array_attribute());
    expect("x");
    numbers.fields.emplace_back("rhs_" + suffix, array_attribute());
  }
  op.attrs.emplace_back("dot_dimension_numbers", std::move(numbers));
  optional_dictionary(op);
}

// (%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {...} {attributes}
void MlirParser::convolution_form(MlirOp& op) {
  expect("(");
  op.operands = operands_until(")");
  expect("dim_numbers");
  expect("=");
  MlirAttr numbers = attr_of(Kind::dialect, "conv");
  convolution_dims(numbers);
  op.attrs.emplace_back("dimension_numbers", std::move(numbers));
  expect(",");
  expect("window");
  expect("=");
  window(op);
  optional_dictionary(op);
}

// {stride = [1, 1], pad = [[0, 1], [2, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [true]}
void MlirParser::window(MlirOp& op) {
  list("{", "}", [&] {
    const size_t at = token().begin;
    const std::string_view word = expect(MlirTokenKind::word, "a part of the window");
    expect("=");
    MlirAttr value = array_attribute();
    if (word == "stride") {
      op.attrs.emplace_back("window_strides", std::move(value));
    } else if (word == "lhs_dilate") {
      op.attrs.emplace_back("lhs_dilation", std::move(value));
    } else if (word == "rhs_dilate") {
      op.attrs.emplace_back("rhs_dilation", std::move(value));
    } else if (word == "reverse") {
      op.attrs.emplace_back("window_reversal", std::move(value));
    } else if (word == "pad") {
      MlirAttr pairs;
      pairs.kind = Kind::array;
      for (const MlirAttr& pair : value.elements) {
        if (pair.elements.size() != 2) lexer_.fail_at(at, "pad: wanted pairs [low, high]");
        pairs.elements.insert(pairs.elements.end(), pair.elements.begin(), pair.elements.end());
      }
      op.attrs.emplace_back("padding", std::move(pairs));
    } else {
      lexer_.fail_at(at, "a window has no {}", quoted(word));
    }
  });
}

// (%a init: %c), (%b init: %d) across dimensions = [1] : types, preceded by `applies stablehlo.add`
// or followed by `reducer(...) {...}`
void MlirParser::reduce_form(MlirOp& op) {
  std::vector<MlirValue> inits;
  do {
    expect("(");
    op.operands.push_back(operand());
    expect("init");
    expect(":");
    inits.push_back(operand());
    expect(")");
  } while (take(","));
  op.operands.insert(op.operands.end(), inits.begin(), inits.end());
  std::string_view applied;
  if (take("applies")) applied = expect(MlirTokenKind::word, "an operation");
  expect("across");
  expect("dimensions");
  expect("=");
  op.attrs.emplace_back("dimensions", array_attribute());
  optional_dictionary(op);
  generic_types(op);
  if (applied.empty()) return reduce_body(op);
  reduce_applies(op, applied);
}

// Builds a body of one operation on two scalars.
void MlirParser::reduce_applies(MlirOp& op, std::string_view name) {
  MlirType scalar = module_.values[static_cast<size_t>(op.operands[0])];
  scalar.dims.clear();
  scalar.bounds.clear();
  MlirBlock block;
  for (int i = 0; i < 2; ++i) block.arguments.push_back(new_value(scalar));
  MlirOp body;
  body.name = std::string(name);
  body.line = op.line;
  body.column = op.column;
  body.operands = block.arguments;
  body.results.push_back(new_value(scalar));
  MlirOp result;
  result.name = "stablehlo.return";
  result.operands = body.results;
  block.ops.push_back(std::move(body));
  block.ops.push_back(std::move(result));
  op.regions.emplace_back().blocks.push_back(std::move(block));
}

// reducer(%a0: type, %b0: type) (%a1: type, %b1: type) {...}: the block has a0, a1, …, b0, b1, …
void MlirParser::reduce_body(MlirOp& op) {
  if (take("(")) lexer_.fail_wanted("`reducer`");
  expect("reducer");
  scopes_.emplace_back();
  MlirBlock block;
  std::vector<MlirValue> second;
  while (is("(")) {
    const size_t at = token().begin;
    MlirBlock pair;
    block_arguments(pair);
    if (pair.arguments.size() != 2) lexer_.fail_at(at, "wanted two arguments");
    block.arguments.push_back(pair.arguments[0]);
    second.push_back(pair.arguments[1]);
  }
  block.arguments.insert(block.arguments.end(), second.begin(), second.end());
  MlirRegion body = region(false);
  scopes_.pop_back();
  if (body.blocks.size() != 1) lexer_.fail_at(token().begin, "a reducer has one block");
  body.blocks[0].arguments = std::move(block.arguments);
  op.regions.push_back(std::move(body));
}

// (%a = %init, ...) : types attributes {...} cond {...} do {...}
void MlirParser::while_form(MlirOp& op) {
  std::vector<std::pair<std::string_view, size_t>> names;
  list("(", ")", [&] {
    const size_t at = token().begin;
    names.emplace_back(expect(MlirTokenKind::value, "a value (`%name`)"), at);
    expect("=");
    op.operands.push_back(operand());
  });
  std::vector<MlirType> types;
  if (!names.empty()) {
    expect(":");
    do types.push_back(type());
    while (take(","));
  }
  if (types.size() != names.size())
    lexer_.fail_at(token().begin, "{} values, {} types", names.size(), types.size());
  make_results(op, types);
  if (take("attributes")) dictionary(op.attrs);
  for (const std::string_view word : {"cond", "do"}) {
    expect(word);
    scopes_.emplace_back();
    std::vector<MlirValue> arguments;
    for (size_t i = 0; i < names.size(); ++i) {
      arguments.push_back(new_value(types[i]));
      define(names[i].first, {arguments.back(), 1}, names[i].second);
    }
    MlirRegion body = region(false);
    scopes_.pop_back();
    if (body.blocks.size() != 1) lexer_.fail_at(token().begin, "wanted one block");
    body.blocks[0].arguments = std::move(arguments);
    op.regions.push_back(std::move(body));
  }
}

// (%a) inits(%b) dimension=0 attributes {...} {...} : (types) -> types
void MlirParser::scan_form(MlirOp& op) {
  expect("(");
  op.operands = operands_until(")");
  const auto arrays = static_cast<int64_t>(op.operands.size());
  expect("inits");
  expect("(");
  const std::vector<MlirValue> inits = operands_until(")");
  op.operands.insert(op.operands.end(), inits.begin(), inits.end());
  op.attrs.emplace_back("operandSegmentSizes",
                        array_of({arrays, static_cast<int64_t>(inits.size())}));
  expect("dimension");
  expect("=");
  op.attrs.emplace_back("dimension", integer_attr(expect_integer()));
  if (take("attributes")) dictionary(op.attrs);
  op.regions.push_back(region(false));
  generic_types(op);
}

// sdy.mesh @mesh = <["x"=2]>: only its name is kept.
void MlirParser::mesh_form(MlirOp& op) {
  op.attrs.emplace_back("sym_name", symbol_attribute());
  expect("=");
  if (!is("<")) lexer_.fail_wanted("`<`");
  lexer_.go_to(lexer_.behind_bracket(token().begin));
  optional_dictionary(op);
}

// %a <@mesh, [{"x"}, {}]> : type
void MlirParser::sharding_form(MlirOp& op) {
  op.operands.push_back(operand());
  if (is("<")) lexer_.go_to(lexer_.behind_bracket(token().begin));
  if (is(MlirTokenKind::word)) {  // group_id = 1
    lexer_.next();
    expect("=");
    attribute(false);
  }
  optional_dictionary(op);
}

// (%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%b: type) {...} : types -> types
void MlirParser::manual_form(MlirOp& op) {
  expect("(");
  op.operands = operands_until(")");
  while (is(MlirTokenKind::word)) {
    lexer_.next();
    expect("=");
    if (!is("[") && !is("{")) lexer_.fail_wanted("`[` or `{`");
    lexer_.go_to(lexer_.behind_bracket(token().begin));
  }
  scopes_.emplace_back();
  MlirBlock head;
  block_arguments(head);
  MlirRegion body = region(false);
  scopes_.pop_back();
  if (body.blocks.size() > 1) lexer_.fail_at(token().begin, "wanted one block");
  if (body.blocks.empty()) body.blocks.emplace_back();
  body.blocks[0].arguments = std::move(head.arguments);
  op.regions.push_back(std::move(body));
  generic_types(op);
}

}  // namespace heddle::import
