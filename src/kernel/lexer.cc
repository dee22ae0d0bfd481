#include "kernel/lexer.h"

#include <algorithm>

namespace heddle::kernel {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return starts_name(c) || is_digit(c) || c == '.'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    while (skip_blank()) {
      Token token{TokenKind::punctuation, {}, line_, static_cast<int>(at_ - line_start_) + 1};
      size_t start = at_;
      char c = source_[at_];
      if (starts_name(c)) {
        token.kind = TokenKind::identifier;
        while (at_ < source_.size() && in_name(source_[at_])) ++at_;
      } else if (is_digit(c)) {
        token.kind = number();
      } else if (c == '"') {
        token.kind = TokenKind::text;
        if (!text())
          return user_error("{}:{}: the string does not end on its line", line_, token.column);
      } else if (std::string_view("[](){},:=+-*/%<>!$").find(c) != std::string_view::npos) {
        ++at_;
        bool doubles = c == '=' || c == '<' || c == '>' || c == '!';
        if (doubles && at_ < source_.size() && source_[at_] == '=') ++at_;
      } else {
        return user_error("{}:{}: unexpected character 0x{:02x}", line_, token.column,
                          static_cast<unsigned char>(c));
      }
      token.spelling = source_.substr(start, at_ - start);
      tokens.push_back(token);
    }
    tokens.push_back({TokenKind::end, {}, line_, static_cast<int>(at_ - line_start_) + 1});
    return tokens;
  }

 private:
  // Skips spaces and # comments; false at the end.
  bool skip_blank() {
    for (; at_ < source_.size(); ++at_) {
      char c = source_[at_];
      if (c == '#') {
        at_ = std::min(source_.find('\n', at_), source_.size());
        if (at_ == source_.size()) return false;
        c = '\n';
      }
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return true;
      }
    }
    return false;
  }

  bool next_is(size_t offset, bool (*test)(char)) const {
    return at_ + offset < source_.size() && test(source_[at_ + offset]);
  }

  TokenKind number() {
    if (source_[at_] == '0' && at_ + 1 < source_.size() && source_[at_ + 1] == 'x') {
      at_ += 2;
      while (next_is(0, is_hex)) ++at_;
      return TokenKind::integer;
    }
    TokenKind kind = TokenKind::integer;
    while (next_is(0, is_digit)) ++at_;
    if (at_ < source_.size() && source_[at_] == '.') {
      kind = TokenKind::real;
      ++at_;
      while (next_is(0, is_digit)) ++at_;
    }
    if (at_ < source_.size() && source_[at_] == 'e') {
      size_t sign =
          at_ + 1 < source_.size() && (source_[at_ + 1] == '-' || source_[at_ + 1] == '+');
      if (next_is(1 + sign, is_digit)) {
        kind = TokenKind::real;
        at_ += 1 + sign;
        while (next_is(0, is_digit)) ++at_;
      }
    }
    return kind;
  }

  bool text() {
    for (++at_; at_ < source_.size() && source_[at_] != '\n'; ++at_) {
      if (source_[at_] == '"') {
        ++at_;
        return true;
      }
      if (source_[at_] == '\\' && ++at_ == source_.size()) return false;
    }
    return false;
  }

  std::string_view source_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

std::string quote(std::string_view s) {
  std::string result = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

Result<std::string> unquote(const Token& token) {
  std::string_view s = token.spelling.substr(1, token.spelling.size() - 2);
  std::string result;
  auto hex = [](char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; };
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      result += s[i];
      continue;
    }
    char c = s[++i];  // the lexer guarantees that there is one
    if (c == 'n') {
      result += '\n';
    } else if (c == '"' || c == '\\') {
      result += c;
    } else if (c == 'x' && i + 2 < s.size() && is_hex(s[i + 1]) && is_hex(s[i + 2])) {
      result += static_cast<char>(hex(s[i + 1]) * 16 + hex(s[i + 2]));
      i += 2;
    } else {
      return user_error("{}:{}: unknown escape '\\{}' in a string; known are \\n \\\" \\\\ \\xNN",
                        token.line, token.column, c);
    }
  }
  return result;
}

bool is_identifier(std::string_view s) {
  return !s.empty() && starts_name(s[0]) && std::all_of(s.begin(), s.end(), in_name);
}

}  // namespace heddle::kernel
