// Scanner of HLO text: white space, comments, identifiers, numbers, strings, and attribute values
// skipped as a whole. It works on demand, because the meaning of characters ("3x3", "0_1",
// "b01f_01io->b01f") depends on their context. Not thread-safe; the text must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace heddle::hlo {

// Letters, digits, `_`, `.`, `-`: the characters that may continue an identifier.
bool is_ident_char(char c);
bool is_ident_start(char c);

class Lexer {
 public:
  // Reads text[begin, end); offsets and line numbers are those of the whole text.
  Lexer(std::string_view text, size_t begin, size_t end) : text_(text), at_(begin), end_(end) {}
  explicit Lexer(std::string_view text) : Lexer(text, 0, text.size()) {}
  Lexer part(size_t begin, size_t end) const { return Lexer(text_, begin, end); }

  // All of these skip white space and comments first.
  size_t offset();
  bool at_end();
  char peek();  // 0 at the end
  bool accept(char c);
  bool accept(std::string_view token);
  bool accept_word(std::string_view word);  // a whole identifier
  Status expect(char c, std::string_view where);
  Status expect(std::string_view token, std::string_view where);
  std::string_view ident();  // empty: no identifier here
  std::string_view peek_ident();
  Result<std::string_view> name(std::string_view what);  // `%` before it is optional
  Result<int64_t> integer(std::string_view what);
  Result<std::string> quoted(std::string_view what);  // without quotes, escapes undone
  // The characters up to white space, `,` or a bracket.
  std::string_view word();
  // `{...}`, `[...]` or `(...)` up to its end; strings count as one, and comments unless `json`
  // (where `//` is text and only `"` makes strings).
  Result<std::string_view> balanced(bool json);
  // One attribute value of any form: braces, string, shape, list of groups, word.
  Result<std::string_view> value(bool json);

  // Raw characters, without skipping.
  std::string_view rest() const { return text_.substr(at_, end_ - at_); }
  bool next_is(char c) const { return at_ < end_ && text_[at_] == c; }
  void advance(size_t n) { at_ += n; }
  void seek(size_t offset) { at_ = offset; }
  std::string_view slice(size_t begin, size_t end) const {
    return text_.substr(begin, end - begin);
  }
  size_t offset_of(std::string_view piece) const { return piece.data() - text_.data(); }

  // "line:column: message".
  template <typename... Args>
  tl::unexpected<Error> error_at(size_t offset, fmt::format_string<Args...> format,
                                 Args&&... args) const {
    return make_error(offset, fmt::format(format, std::forward<Args>(args)...));
  }
  tl::unexpected<Error> make_error(size_t offset, std::string message) const;
  // "got <next characters>, wanted <what>" at the next token.
  tl::unexpected<Error> unexpected_here(std::string_view wanted);

 private:
  void skip_space();
  bool skip_string();  // at a quote; false: not closed
  bool skip_comment();
  std::string_view text_;
  size_t at_, end_;
};

// Normal form of a raw value: comments removed and white space outside strings folded to one blank,
// so that an instruction is one line. Idempotent.
std::string fold_raw(std::string_view raw, bool json);
// The same with no white space at all outside strings.
std::string squeeze_raw(std::string_view raw);
// In double quotes, with C escapes.
std::string quote(std::string_view text);

}  // namespace heddle::hlo
