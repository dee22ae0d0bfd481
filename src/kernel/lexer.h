// Tokens of kernel text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::kernel {

enum class TokenKind : uint8_t { identifier, integer, real, text, punctuation, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view spelling;  // into the source; a text with its quotes
  int line = 0, column = 0;
  bool is(std::string_view s) const {
    return spelling == s && kind != TokenKind::text && kind != TokenKind::end;
  }
};

// The last token is `end`. The tokens point into `source`.
Result<std::vector<Token>> tokenize(std::string_view source);

// "…" with \", \\, \n and \xNN; and back. Precondition of unquote: a text token's spelling.
std::string quote(std::string_view s);
Result<std::string> unquote(const Token& token);

bool is_identifier(std::string_view s);

}  // namespace heddle::kernel
