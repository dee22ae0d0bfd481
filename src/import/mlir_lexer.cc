#include "import/mlir_lexer.h"

#include <algorithm>
#include <cctype>

namespace heddle::import {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '$' || c == '.'; }
bool is_suffix(char c) { return is_word(c) || c == '-'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
}

}  // namespace

MlirLexer::Place MlirLexer::place(size_t position) const {
  position = std::min(position, text_.size());
  const std::string_view before = text_.substr(0, position);
  const size_t newline = before.rfind('\n');
  const auto lines = std::count(before.begin(), before.end(), '\n');
  return {first_line_ + static_cast<int>(lines),
          static_cast<int>(newline == std::string_view::npos ? position + 1 : position - newline)};
}

size_t MlirLexer::skip_blank(size_t position) const {
  while (position < text_.size()) {
    const char c = text_[position];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++position;
    } else if (c == '/' && at(position + 1) == '/') {
      position = std::min(text_.size(), text_.find('\n', position));
    } else if (c == '{' && text_.substr(position, 3) == "{-#") {  // resources of a file
      const size_t end = text_.find("#-}", position);
      if (end == std::string_view::npos) fail_at(position, "`{{-#` is not closed");
      position = end + 3;
    } else {
      break;
    }
  }
  return position;
}

size_t MlirLexer::string_end(size_t begin) const {
  size_t at = begin + 1;
  while (at < text_.size() && text_[at] != '"') {
    if (text_[at] == '\n') break;
    at += text_[at] == '\\' ? 2 : 1;
  }
  if (at >= text_.size() || text_[at] != '"') fail_at(begin, "the string is not closed");
  return at;
}

void MlirLexer::set(MlirTokenKind kind, size_t begin, size_t from, size_t to, size_t end) {
  token_ = {kind, text_.substr(from, to - from), begin, end};
}

void MlirLexer::lex_number(size_t begin) {
  size_t end = begin;
  if (at(begin) == '0' && at(begin + 1) == 'x' && is_hex(at(begin + 2))) {
    end += 2;
    while (is_hex(at(end))) ++end;
    return set(MlirTokenKind::integer, begin, begin, end, end);
  }
  while (is_digit(at(end))) ++end;
  if (at(end) != '.') return set(MlirTokenKind::integer, begin, begin, end, end);
  ++end;
  while (is_digit(at(end))) ++end;
  if (at(end) == 'e' || at(end) == 'E') {
    const size_t sign = at(end + 1) == '+' || at(end + 1) == '-' ? 1 : 0;
    if (is_digit(at(end + 1 + sign))) {
      end += 1 + sign;
      while (is_digit(at(end))) ++end;
    }
  }
  set(MlirTokenKind::floating, begin, begin, end, end);
}

void MlirLexer::next() { go_to(token_.end); }

void MlirLexer::go_to(size_t position) {
  const size_t begin = skip_blank(position);
  if (begin >= text_.size())
    return set(MlirTokenKind::end, text_.size(), text_.size(), text_.size(), text_.size());
  const char c = text_[begin];
  size_t end = begin + 1;
  if (is_digit(c)) return lex_number(begin);
  if (is_letter(c)) {
    while (is_word(at(end))) ++end;
    return set(MlirTokenKind::word, begin, begin, end, end);
  }
  if (c == '"') {
    const size_t quote = string_end(begin);
    return set(MlirTokenKind::string, begin, begin + 1, quote, quote + 1);
  }
  if (c == '@' && at(end) == '"') {
    const size_t quote = string_end(end);
    return set(MlirTokenKind::symbol, begin, begin + 2, quote, quote + 1);
  }
  if (c == '-' && at(end) == '>')
    return set(MlirTokenKind::arrow, begin, begin, begin + 2, begin + 2);
  const MlirTokenKind kind = c == '%'   ? MlirTokenKind::value
                             : c == '@' ? MlirTokenKind::symbol
                             : c == '^' ? MlirTokenKind::block
                             : c == '#' ? MlirTokenKind::attr
                             : c == '!' ? MlirTokenKind::type
                                        : MlirTokenKind::other;
  if (kind != MlirTokenKind::other && is_suffix(at(end))) {
    // A name that starts with digits has only digits: `%0x` is not one name.
    if (is_digit(at(end))) {
      while (is_digit(at(end))) ++end;
    } else {
      while (is_suffix(at(end))) ++end;
    }
    return set(kind, begin, begin + 1, end, end);
  }
  set(MlirTokenKind::other, begin, begin, end, end);
}

size_t MlirLexer::behind_bracket(size_t position) const {
  std::string open;  // the closing brackets still expected
  size_t at = position;
  while (at < text_.size()) {
    at = skip_blank(at);
    if (at >= text_.size()) break;
    const char c = text_[at];
    if (c == '"') {
      at = string_end(at);
    } else if (c == '-' && this->at(at + 1) == '>') {
      ++at;
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '>');
    } else if (c == ')' || c == ']' || c == '}' || c == '>') {
      if (open.back() != c) fail_at(at, "got '{}', wanted '{}'", c, open.back());
      open.pop_back();
      if (open.empty()) return at + 1;
    }
    ++at;
  }
  fail_at(position, "`{}` is not closed", text_[position]);
}

void MlirLexer::fail_wanted(std::string_view wanted) const {
  constexpr size_t kLongest = 40;
  const std::string_view got = text_.substr(token_.begin, token_.end - token_.begin);
  fail_at(
      token_.begin, "got {}, wanted {}",
      token_.kind == MlirTokenKind::end ? "the end of the text" : quoted(got.substr(0, kLongest)),
      wanted);
}

std::string unescape_mlir(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      result.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    if (is_hex(c) && i + 1 < text.size() && is_hex(text[i + 1])) {
      result.push_back(static_cast<char>(hex_value(c) * 16 + hex_value(text[i + 1])));
      ++i;
    } else {
      result.push_back(c == 'n' ? '\n' : c == 't' ? '\t' : c);
    }
  }
  return result;
}

}  // namespace heddle::import
