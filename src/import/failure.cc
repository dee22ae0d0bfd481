#include "import/failure.h"

namespace heddle::import {

Error one_line(Error error) {
  std::string text;
  for (const char c : error.message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  error.message = std::move(text);
  return error;
}

std::string quoted(std::string_view name) {
  constexpr size_t kLongest = 120;
  std::string text = "'";
  for (char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else if (c == '\'' || c == '\\') {
      text += '\\';
      text += c;
    } else {
      text += c;
    }
  }
  return text + (name.size() > kLongest ? "...'" : "'");
}

}  // namespace heddle::import
