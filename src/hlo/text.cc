#include "hlo/text.h"

#include <algorithm>

#include "hlo/parser.h"

namespace heddle::hlo {
namespace {

// The ranges between `// -----` lines.
std::vector<std::pair<size_t, size_t>> split_lines(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> parts;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.size(), text.find('\n', at));
    if (text.substr(at).starts_with("// -----")) {
      parts.emplace_back(begin, at);
      begin = end;
    }
    at = end + 1;
  }
  parts.emplace_back(std::min(begin, text.size()), text.size());
  return parts;
}

}  // namespace

Result<std::unique_ptr<Module>> parse_module(std::string_view text) {
  Parser parser(text);
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Module> module, parser.module());
  HEDDLE_RETURN_IF_ERROR(parser.expect_end("module"));
  return module;
}

Result<std::vector<std::unique_ptr<Module>>> parse_modules(std::string_view text) {
  std::vector<std::unique_ptr<Module>> modules;
  for (const auto& [begin, end] : split_lines(text)) {
    Parser parser(text, begin, end);
    while (!parser.at_end()) {
      HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Module> module, parser.module());
      modules.push_back(std::move(module));
    }
  }
  return modules;
}

Result<Shape> parse_shape(std::string_view text) {
  Parser parser(text);
  HEDDLE_ASSIGN_OR_RETURN(Shape shape, parser.shape());
  HEDDLE_RETURN_IF_ERROR(parser.expect_end("shape"));
  return shape;
}

Result<Literal> parse_literal(std::string_view text, const Shape& shape) {
  Parser parser(text);
  HEDDLE_ASSIGN_OR_RETURN(Literal literal, parser.literal(shape));
  HEDDLE_RETURN_IF_ERROR(parser.expect_end("literal"));
  return literal;
}

}  // namespace heddle::hlo
