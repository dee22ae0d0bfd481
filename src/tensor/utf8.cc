#include "tensor/utf8.h"

namespace heddle::tensor {

std::vector<uint32_t> code_points(std::string_view text) {
  std::vector<uint32_t> points;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t point = length == 1 ? lead : lead & (0x7fu >> length);
    bool ok = i + length <= text.size() && lead < 0xf8 && (lead < 0x80 || lead >= 0xc0);
    for (size_t k = 1; ok && k < length; ++k) {
      const auto byte = static_cast<uint8_t>(text[i + k]);
      ok = (byte & 0xc0) == 0x80;
      point = point << 6 | (byte & 0x3f);
    }
    points.push_back(ok ? point : lead);
    i += ok ? length : 1;
  }
  return points;
}

std::string utf8(const std::vector<uint32_t>& points) {
  std::string text;
  for (uint32_t c : points) {
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xc0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      text += static_cast<char>(0xe0 | c >> 12);
      text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      text += static_cast<char>(0x80 | (c & 0x3f));
    } else {
      text += static_cast<char>(0xf0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      text += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return text;
}

}  // namespace heddle::tensor
