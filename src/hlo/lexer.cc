#include "hlo/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/escape.h"

namespace heddle::hlo {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

char closer_of(char open) { return open == '{' ? '}' : open == '[' ? ']' : ')'; }

// The part of the text that a message quotes: one line, printable, short.
std::string shown(std::string_view text) {
  if (text.empty()) return "the end of the text";
  constexpr size_t kMost = 24;
  size_t n = 1;
  if (is_ident_char(text[0]) || text[0] == '%')
    while (n < text.size() && is_ident_char(text[n])) ++n;
  std::string out = "'";
  for (char c : text.substr(0, std::min(n, kMost))) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += n > kMost ? "...'" : "'";
  return out;
}

// Decodes one escape of `text` at `i` (after the backslash); moves `i` past it.
char unescape(std::string_view text, size_t& i) {
  const char c = text[i++];
  auto number = [&](int base, size_t most) {
    unsigned value = 0;
    const size_t limit = std::min(text.size(), i + most);
    const auto end = std::from_chars(text.data() + i, text.data() + limit, value, base);
    i = end.ptr - text.data();
    return static_cast<char>(value);
  };
  if (c >= '0' && c <= '7') {
    --i;
    return number(8, 3);
  }
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'x':
      return number(16, 2);
    default:
      return c;
  }
}

}  // namespace

bool is_ident_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_ident_char(char c) { return is_ident_start(c) || is_digit(c) || c == '.' || c == '-'; }

bool Lexer::skip_comment() {
  if (end_ - at_ < 2 || text_[at_] != '/') return false;
  if (text_[at_ + 1] == '/') {
    at_ = std::min(end_, text_.find('\n', at_));
    return true;
  }
  if (text_[at_ + 1] != '*') return false;
  const size_t close = text_.find("*/", at_ + 2);
  at_ = close >= end_ ? end_ : std::min(end_, close + 2);
  return true;
}

void Lexer::skip_space() {
  while (at_ < end_) {
    if (is_space(text_[at_])) {
      ++at_;
    } else if (text_[at_] != '/' || !skip_comment()) {
      return;
    }
  }
}

size_t Lexer::offset() {
  skip_space();
  return at_;
}

bool Lexer::at_end() { return offset() >= end_; }

char Lexer::peek() { return at_end() ? '\0' : text_[at_]; }

bool Lexer::accept(char c) {
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool Lexer::accept(std::string_view token) {
  skip_space();
  if (!rest().starts_with(token)) return false;
  at_ += token.size();
  return true;
}

std::string_view Lexer::peek_ident() {
  const size_t begin = offset();
  size_t end = begin;
  if (end < end_ && is_ident_start(text_[end]))
    while (end < end_ && is_ident_char(text_[end])) ++end;
  return slice(begin, end);
}

std::string_view Lexer::ident() {
  const std::string_view found = peek_ident();
  at_ += found.size();
  return found;
}

bool Lexer::accept_word(std::string_view wanted) {
  if (peek_ident() != wanted) return false;
  at_ += wanted.size();
  return true;
}

Status Lexer::expect(char c, std::string_view where) {
  if (accept(c)) return {};
  return unexpected_here(fmt::format("'{}' {}", c, where));
}

Status Lexer::expect(std::string_view token, std::string_view where) {
  if (accept(token)) return {};
  return unexpected_here(fmt::format("'{}' {}", token, where));
}

Result<std::string_view> Lexer::name(std::string_view what) {
  const size_t begin = offset();
  accept('%');
  size_t end = at_;
  if (end < end_ && is_ident_start(text_[end]))
    while (end < end_ && is_ident_char(text_[end])) ++end;
  if (end == at_) {
    at_ = begin;
    return unexpected_here(what);
  }
  const std::string_view found = slice(at_, end);
  at_ = end;
  return found;
}

Result<int64_t> Lexer::integer(std::string_view what) {
  skip_space();
  int64_t value = 0;
  const auto end = std::from_chars(text_.data() + at_, text_.data() + end_, value);
  if (end.ec == std::errc::result_out_of_range)
    return error_at(at_, "{} is out of the range of 64 bits", what);
  if (end.ec != std::errc()) return unexpected_here(what);
  at_ = end.ptr - text_.data();
  return value;
}

bool Lexer::skip_string() {
  const char mark = text_[at_++];
  while (at_ < end_) {
    const char c = text_[at_++];
    if (c == mark) return true;
    if (c == '\\' && at_ < end_) ++at_;
  }
  return false;
}

Result<std::string> Lexer::quoted(std::string_view what) {
  const size_t begin = offset();
  if (!next_is('"') && !next_is('\'')) return unexpected_here(what);
  if (!skip_string()) return error_at(begin, "the string does not end");
  const std::string_view body = slice(begin + 1, at_ - 1);
  std::string out;
  out.reserve(body.size());
  for (size_t i = 0; i < body.size();) {
    const char c = body[i++];
    out += c == '\\' && i < body.size() ? unescape(body, i) : c;
  }
  return out;
}

std::string_view Lexer::word() {
  const size_t begin = offset();
  while (at_ < end_ && !is_space(text_[at_]) &&
         std::string_view(",{}[]()\"'/=").find(text_[at_]) == std::string_view::npos)
    ++at_;
  return slice(begin, at_);
}

Result<std::string_view> Lexer::balanced(bool json) {
  const size_t begin = offset();
  if (!next_is('{') && !next_is('[') && !next_is('(')) return unexpected_here("a bracket");
  const char open = text_[at_], close = closer_of(open);
  int64_t depth = 0;
  while (at_ < end_) {
    const char c = text_[at_];
    if (c == '"' || (c == '\'' && !json)) {
      if (!skip_string()) break;
      continue;
    }
    if (c == '/' && !json && skip_comment()) continue;
    ++at_;
    if (c == open) ++depth;
    if (c == close && --depth == 0) return slice(begin, at_);
  }
  at_ = end_;
  return error_at(begin, "'{}' is not closed", open);
}

Result<std::string_view> Lexer::value(bool json) {
  const size_t begin = offset();
  if (next_is('{') || next_is('(')) return balanced(json);
  if (next_is('"') || next_is('\'')) {
    if (!skip_string()) return error_at(begin, "the string does not end");
    return slice(begin, at_);
  }
  const bool has_word = !word().empty();
  if (next_is('[')) {
    // [2,4]<=[8]T(1,0), f32[2,3]{1,0}, mesh['a'=2] {'a'}
    HEDDLE_RETURN_IF_ERROR(balanced(false));
    size_t end = at_;
    if (accept("<=")) {
      if (peek() != '[') return unexpected_here("'[' after '<='");
      HEDDLE_RETURN_IF_ERROR(balanced(false));
      end = at_;
      if (accept("T(")) {
        --at_;
        HEDDLE_RETURN_IF_ERROR(balanced(false));
        end = at_;
      }
    } else if (has_word && peek() == '{') {
      HEDDLE_RETURN_IF_ERROR(balanced(false));
      end = at_;
    }
    at_ = end;
    return slice(begin, end);
  }
  if (!has_word) return unexpected_here("a value");
  return slice(begin, at_);
}

tl::unexpected<Error> Lexer::make_error(size_t offset, std::string message) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t last = before.rfind('\n');
  const size_t column = before.size() - (last == std::string_view::npos ? 0 : last + 1) + 1;
  return user_error("{}:{}: {}", line, column, escaped(message));  // it may quote several lines
}

tl::unexpected<Error> Lexer::unexpected_here(std::string_view wanted) {
  skip_space();
  return error_at(at_, "got {}, wanted {}", shown(rest()), wanted);
}

std::string fold_raw(std::string_view raw, bool json) {
  std::string out;
  out.reserve(raw.size());
  bool space = false;
  for (size_t i = 0; i < raw.size();) {
    const char c = raw[i];
    if (is_space(c)) {
      space = true;
      ++i;
      continue;
    }
    if (!json && c == '/' && i + 1 < raw.size() && (raw[i + 1] == '/' || raw[i + 1] == '*')) {
      const bool line = raw[i + 1] == '/';
      const size_t end = line ? raw.find('\n', i) : raw.find("*/", i + 2);
      i = end == std::string_view::npos ? raw.size() : end + (line ? 1 : 2);
      space = true;
      continue;
    }
    if (space && !out.empty()) out += ' ';
    space = false;
    out += c;
    ++i;
    if (c != '"' && (json || c != '\'')) continue;
    while (i < raw.size() && raw[i] != c) {
      // A line break inside a string is written as its escape; the value is the same.
      if (raw[i] == '\n') {
        out += "\\n";
        ++i;
        continue;
      }
      if (raw[i] == '\\' && i + 1 < raw.size()) {
        if (raw[++i] == '\n') continue;
        out += '\\';
      }
      out += raw[i++];
    }
    if (i < raw.size()) out += raw[i++];
  }
  return out;
}

std::string squeeze_raw(std::string_view raw) {
  const std::string folded = fold_raw(raw, false);
  std::string out;
  char mark = 0;
  for (size_t i = 0; i < folded.size(); ++i) {
    const char c = folded[i];
    if (mark == 0 && c == ' ') continue;
    out += c;
    if (mark == 0 && (c == '"' || c == '\'')) {
      mark = c;
    } else if (mark != 0 && c == '\\' && i + 1 < folded.size()) {
      out += folded[++i];
    } else if (c == mark) {
      mark = 0;
    }
  }
  return out;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
          out += fmt::format("\\{:03o}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

}  // namespace heddle::hlo
