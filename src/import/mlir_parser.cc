// MLIR text: operations, regions, names of values, modules and functions.
#include "import/mlir_parser.h"

#include <algorithm>
#include <charconv>

namespace heddle::import {

bool MlirParser::take(std::string_view text) {
  if (!is(text)) return false;
  lexer_.next();
  return true;
}

void MlirParser::expect(std::string_view text) {
  if (!take(text)) lexer_.fail_wanted(fmt::format("`{}`", text));
}

std::string_view MlirParser::expect(MlirTokenKind kind, std::string_view wanted) {
  if (!is(kind)) lexer_.fail_wanted(wanted);
  const std::string_view text = token().text;
  lexer_.next();
  return text;
}

int64_t MlirParser::expect_integer() {
  const bool negative = take("-");
  const size_t at = token().begin;
  const std::string_view text = expect(MlirTokenKind::integer, "an integer");
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    lexer_.fail_at(at, "{} is no number of 64 bits", quoted(text));
  return negative ? -value : value;
}

MlirModule MlirParser::parse() {
  const MlirLexer::Place place = lexer_.place(0);
  marked_line_ = place.line;
  scopes_.emplace_back();
  while (!is(MlirTokenKind::end)) top_level();
  return unwrap_module(std::move(module_));
}

void MlirParser::top_level() {
  if (is(MlirTokenKind::attr) || is(MlirTokenKind::type)) return alias();
  module_.body.ops.push_back(operation());
}

// #name = attribute, !name = type; locations are only kept as text.
void MlirParser::alias() {
  const bool is_attr = is(MlirTokenKind::attr);
  const std::string name(token().text);
  lexer_.next();
  expect("=");
  if (!is_attr) {
    type_aliases_[name] = type();
  } else if (is("loc")) {
    module_.locations.emplace_back("#" + name, location_text());
  } else {
    attr_aliases_[name] = attribute();
  }
}

MlirValue MlirParser::new_value(MlirType type) {
  module_.values.push_back(std::move(type));
  return static_cast<MlirValue>(module_.values.size() - 1);
}

void MlirParser::define(std::string_view name, Name values, size_t position) {
  for (size_t i = isolated_.back(); i < scopes_.size(); ++i)
    if (scopes_[i].contains(name)) lexer_.fail_at(position, "value %{} is defined twice", name);
  scopes_.back().emplace(name, values);
}

MlirValue MlirParser::operand() {
  const size_t at = token().begin;
  const std::string_view name = expect(MlirTokenKind::value, "a value (`%name`)");
  size_t index = 0;
  bool indexed = false;
  if (is(MlirTokenKind::attr) && token().begin == at + 1 + name.size()) {  // %name#1
    const std::string_view digits = token().text;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size())
      lexer_.fail_wanted("the number of a result");
    lexer_.next();
    indexed = true;
  }
  for (size_t i = scopes_.size(); i-- > isolated_.back();) {
    const auto found = scopes_[i].find(name);
    if (found == scopes_[i].end()) continue;
    const Name& values = found->second;
    if (index >= values.count || (!indexed && values.count != 1))
      lexer_.fail_at(at, "value %{} has {} results; got %{}#{}", name, values.count, name, index);
    return values.first + static_cast<MlirValue>(index);
  }
  lexer_.fail_at(at, "value %{} is not defined before its use", name);
}

std::vector<MlirValue> MlirParser::operands_until(std::string_view close) {
  std::vector<MlirValue> values;
  if (take(close)) return values;
  do values.push_back(operand());
  while (take(","));
  expect(close);
  return values;
}

void MlirParser::make_results(MlirOp& op, std::vector<MlirType> types) {
  for (MlirType& type : types) op.results.push_back(new_value(std::move(type)));
}

// Lines are counted from the last marked operation: operations mostly come in order.
void MlirParser::mark(MlirOp& op, size_t position) {
  if (position >= marked_) {
    for (size_t i = marked_; i < position; ++i) {
      if (lexer_.at(i) != '\n') continue;
      ++marked_line_;
      line_begin_ = i + 1;
    }
    marked_ = position;
  }
  op.line = marked_line_;
  op.column = static_cast<int32_t>(position - line_begin_ + 1);
}

MlirOp MlirParser::operation() {
  const Level level(this);
  MlirOp op;
  mark(op, token().begin);
  std::vector<std::pair<std::string_view, size_t>> names;  // with their count
  const size_t names_at = token().begin;
  if (is(MlirTokenKind::value)) {
    do {
      const std::string_view name = expect(MlirTokenKind::value, "a value (`%name`)");
      const int64_t count = take(":") ? expect_integer() : 1;
      if (count < 1 || count > static_cast<int64_t>(kMostResults))
        lexer_.fail_at(names_at, "%{} has {} results, wanted 1 to {}", name, count, kMostResults);
      names.emplace_back(name, count);
    } while (take(","));
    expect("=");
  }
  size_t wanted = 0;
  for (const auto& [name, count] : names) wanted += count;
  const size_t at = token().begin;
  if (is(MlirTokenKind::string)) {
    op.name = unescape_mlir(token().text);
    lexer_.next();
    generic(op);
  } else {
    op.name = std::string(expect(MlirTokenKind::word, "an operation"));
    pretty(op, wanted, at);
  }
  location(op);
  if (!names.empty() && op.results.size() != wanted)
    lexer_.fail_at(at, "{} has {} results; {} are named", op.name, op.results.size(), wanted);
  size_t next = 0;
  for (const auto& [name, count] : names) {
    define(name, {op.results[next], count}, names_at);
    next += count;
  }
  return op;
}

// (operands) <{properties}> ({regions}) {attributes} : (types) -> types
void MlirParser::generic(MlirOp& op) {
  expect("(");
  op.operands = operands_until(")");
  if (take("[")) {  // successors
    lexer_.fail_at(token().begin, "{}: successor blocks are not supported", op.name);
  }
  if (take("<")) {
    dictionary(op.attrs);
    expect(">");
  }
  if (is("(")) regions(op);
  optional_dictionary(op);
  generic_types(op);
}

void MlirParser::generic_types(MlirOp& op) {
  const size_t at = token().begin;
  expect(":");
  const std::vector<MlirType> types = type_list();
  if (types.size() != op.operands.size())
    lexer_.fail_at(at, "{}: {} operands, {} types", op.name, op.operands.size(), types.size());
  expect("->");
  make_results(op, result_types());
}

void MlirParser::regions(MlirOp& op) {
  const bool isolated = op.name == "func.func" || op.name == "builtin.module";
  list("(", ")", [&] { op.regions.push_back(region(isolated)); });
}

MlirRegion MlirParser::region(bool isolated) {
  const Level level(this);
  expect("{");
  MlirRegion region;
  if (isolated) isolated_.push_back(scopes_.size());
  scopes_.emplace_back();
  if (!is("}") && !is(MlirTokenKind::block)) block(region.blocks.emplace_back(), false);
  while (is(MlirTokenKind::block)) block(region.blocks.emplace_back(), true);
  expect("}");
  scopes_.pop_back();
  if (isolated) isolated_.pop_back();
  return region;
}

void MlirParser::block(MlirBlock& block, bool has_label) {
  if (has_label) {
    lexer_.next();
    if (is("(")) block_arguments(block);
    expect(":");
  }
  while (!is("}") && !is(MlirTokenKind::block)) {
    if (is(MlirTokenKind::end)) lexer_.fail_wanted("`}`");
    block.ops.push_back(operation());
  }
}

// (%a: type, %b: type loc(...))
void MlirParser::block_arguments(MlirBlock& block) {
  list("(", ")", [&] {
    const size_t at = token().begin;
    const std::string_view name = expect(MlirTokenKind::value, "an argument (`%name`)");
    expect(":");
    const MlirValue value = new_value(type());
    block.arguments.push_back(value);
    define(name, {value, 1}, at);
    if (is("{")) {
      std::vector<std::pair<std::string, MlirAttr>> ignored;
      dictionary(ignored);
    }
    if (is("loc")) location_text();
  });
}

// module @name attributes {...} {...}
void MlirParser::module_op(MlirOp& op) {
  op.name = "builtin.module";
  if (is(MlirTokenKind::symbol)) {
    MlirAttr name;
    name.kind = MlirAttr::Kind::string;
    name.text = std::string(token().text);
    op.attrs.emplace_back("sym_name", std::move(name));
    lexer_.next();
  }
  if (take("attributes")) dictionary(op.attrs);
  op.regions.push_back(region(true));
}

// (%a: type {...} loc(...), ...): stores the names of the arguments ("arg_names") and their
// dictionaries ("arg_attrs").
void MlirParser::function_arguments(MlirOp& op, MlirType& signature, MlirBlock& entry) {
  MlirAttr names, notes;
  names.kind = notes.kind = MlirAttr::Kind::array;
  list("(", ")", [&] {
    const size_t at = token().begin;
    MlirAttr& name = names.elements.emplace_back();
    name.kind = MlirAttr::Kind::string;
    const bool named = is(MlirTokenKind::value);
    std::string_view argument;
    if (named) {
      argument = expect(MlirTokenKind::value, "an argument");
      expect(":");
      name.text = std::string(argument);
    }
    MlirType one = type();
    signature.elements.push_back(one);
    const MlirValue value = new_value(std::move(one));
    entry.arguments.push_back(value);
    if (named) define(argument, {value, 1}, at);
    MlirAttr& note = notes.elements.emplace_back();
    note.kind = MlirAttr::Kind::dictionary;
    if (is("{")) dictionary(note.fields);
    if (is("loc")) location_text();
  });
  op.attrs.emplace_back("arg_names", std::move(names));
  op.attrs.emplace_back("arg_attrs", std::move(notes));
}

void MlirParser::function_results(MlirType& signature) {
  if (!is("(")) {
    signature.results.push_back(type());
    return;
  }
  list("(", ")", [&] {
    signature.results.push_back(type());
    std::vector<std::pair<std::string, MlirAttr>> ignored;
    if (is("{")) dictionary(ignored);
    if (is("loc")) location_text();
  });
}

// func.func public @name(%a: type {...}) -> (type {...}) attributes {...} {...}
void MlirParser::function(MlirOp& op) {
  MlirAttr visibility;
  visibility.kind = MlirAttr::Kind::string;
  if (is("public") || is("private") || is("nested")) {
    visibility.text = std::string(token().text);
    lexer_.next();
    op.attrs.emplace_back("sym_visibility", std::move(visibility));
  }
  MlirAttr name;
  name.kind = MlirAttr::Kind::string;
  name.text = std::string(expect(MlirTokenKind::symbol, "the function's name (`@name`)"));
  op.attrs.emplace_back("sym_name", std::move(name));

  isolated_.push_back(scopes_.size());
  scopes_.emplace_back();
  MlirAttr signature;
  signature.kind = MlirAttr::Kind::type;
  signature.type.kind = MlirType::Kind::function;
  MlirRegion body;
  MlirBlock& entry = body.blocks.emplace_back();
  function_arguments(op, signature.type, entry);
  if (take("->")) function_results(signature.type);
  op.attrs.emplace_back("function_type", std::move(signature));
  if (take("attributes")) dictionary(op.attrs);
  if (take("{")) {
    const Level level(this);
    block(entry, false);
    if (is(MlirTokenKind::block))
      lexer_.fail_at(token().begin, "a function of several blocks is not supported");
    expect("}");
    op.regions.push_back(std::move(body));
  }
  scopes_.pop_back();
  isolated_.pop_back();
}

// The body made for `applies` gets the location of its operation.
void MlirParser::location(MlirOp& op) {
  if (!is("loc")) return;
  op.location = location_text();
  if (op.name != "stablehlo.reduce") return;
  for (MlirRegion& region : op.regions)
    for (MlirBlock& block : region.blocks)
      for (MlirOp& inner : block.ops)
        if (inner.location.empty()) inner.location = op.location;
}

// loc(...): the first name in it, or the alias. A name followed by `:` is a file's.
std::string MlirParser::location_text() {
  expect("loc");
  if (!is("(")) lexer_.fail_wanted("`(`");
  const size_t end = lexer_.behind_bracket(token().begin);
  std::string name;
  for (lexer_.next(); token().begin < end && name.empty(); lexer_.next()) {
    if (is(MlirTokenKind::attr)) {
      name = "#" + std::string(token().text);
    } else if (is(MlirTokenKind::string) && lexer_.at(lexer_.skip_blank(token().end)) != ':') {
      name = unescape_mlir(token().text);
    }
  }
  lexer_.go_to(end);
  return name;
}

MlirModule parse_mlir(std::string_view text, int line) { return MlirParser(text, line).parse(); }

}  // namespace heddle::import
