#include "import/hlo_proto_notes.h"

namespace heddle::import {

bool is_json(std::string_view text) {
  if (text.empty() || text[0] != '{') return false;
  hlo::Lexer lexer(text);
  return lexer.balanced(true) && lexer.rest().empty();
}

TextParts read_map(std::string_view text) {
  TextParts map;
  if (text.empty()) return map;
  map = split_parts(without_braces(text));
  for (auto& [key, value] : map) value = unquoted(value);
  return map;
}

std::string map_text(const TextParts& map) {
  std::string out;
  for (const auto& [key, value] : map)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", key,
                       is_json(value) ? hlo::fold_raw(value, true) : hlo::quote(value));
  return "{" + out + "}";
}

std::vector<std::string> table_rows(const hlo::Annotations& header, std::string_view table) {
  std::vector<std::string> rows;
  for (const auto& [key, text] : header) {
    if (key != table) continue;
    hlo::Lexer lexer(text);
    while (!lexer.at_end()) {
      const int64_t number = value_or_throw(lexer.integer("a row number"));
      if (number != static_cast<int64_t>(rows.size()) + 1)
        fail("{}: row {} where row {} is wanted", table, number, rows.size() + 1);
      rows.push_back(unquoted(value_or_throw(lexer.value(false))));
    }
  }
  return rows;
}

std::string table_text(const std::vector<std::string>& rows, bool quoted) {
  std::string out;
  for (size_t i = 0; i < rows.size(); ++i)
    out +=
        fmt::format("{}{} {}", i == 0 ? "" : "\n", i + 1, quoted ? hlo::quote(rows[i]) : rows[i]);
  return out;
}

}  // namespace heddle::import
