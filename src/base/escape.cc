#include "base/escape.h"

#include <fmt/format.h>

namespace heddle {

std::string escaped(std::string_view text, std::string_view keep) {
  std::string result;
  result.reserve(text.size());
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // 0xc2 and one of these bytes encode U+0080 ... U+009F; U+009B is another form of ESC [.
    const bool second = before == 0xc2 && byte >= 0x80 && byte <= 0x9f;
    before = byte;
    if ((byte < 0x20 || byte == 0x7f || second) && keep.find(c) == std::string_view::npos)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result;
}

}  // namespace heddle
