// Tokens of MLIR text. A token is a view of the text; the parser may go back to any position.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/failure.h"

namespace heddle::import {

enum class MlirTokenKind : uint8_t {
  end,
  word,      // add, stablehlo.add, f32
  value,     // %name, without %
  symbol,    // @name or @"name", without @ and quotes
  block,     // ^name, without ^
  attr,      // #name, without #
  type,      // !name, without !
  integer,   // 12, 0x1F
  floating,  // 1.5e3
  string,    // without quotes, escapes as written
  arrow,     // ->
  other      // one character
};

struct MlirToken {
  MlirTokenKind kind = MlirTokenKind::end;
  std::string_view text;
  size_t begin = 0, end = 0;  // in the text, with sigil and quotes
};

class MlirLexer {
 public:
  // `line`: of the text's first line, for messages.
  MlirLexer(std::string_view text, int line) : text_(text), first_line_(line) { next(); }

  const MlirToken& token() const { return token_; }
  void next();
  void go_to(size_t position);  // and reads the token there
  // Position after the white space and comments at `position`.
  size_t skip_blank(size_t position) const;
  char at(size_t position) const { return position < text_.size() ? text_[position] : '\0'; }
  std::string_view text() const { return text_; }

  // The position after the bracket that closes the one at `position`. Skips strings, comments and
  // arrows. No recursion: nesting costs one byte per level.
  size_t behind_bracket(size_t position) const;

  struct Place {
    int line, column;
  };
  Place place(size_t position) const;

  template <typename... Args>
  [[noreturn]] void fail_at(size_t position, fmt::format_string<Args...> format,
                            Args&&... args) const {
    const Place at = place(position);
    fail("{}:{}: {}", at.line, at.column, fmt::format(format, std::forward<Args>(args)...));
  }
  // "got X, wanted `wanted`" at the token.
  [[noreturn]] void fail_wanted(std::string_view wanted) const;

 private:
  void set(MlirTokenKind kind, size_t begin, size_t from, size_t to, size_t end);
  void lex_number(size_t begin);
  size_t string_end(size_t begin) const;  // position of the closing quote
  std::string_view text_;
  int first_line_;
  MlirToken token_;
};

// Resolves the escapes of a string token:
// , \t, \\, \", \XX.
std::string unescape_mlir(std::string_view text);

}  // namespace heddle::import
