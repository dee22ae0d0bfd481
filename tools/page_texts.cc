#include "page_texts.h"

#include <zlib.h>

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

constexpr size_t kPieceBytes = 256 << 10;

std::string compressed(const std::string& text) {
  uLongf bytes = ::compressBound(static_cast<uLong>(text.size()));
  std::string result(bytes, '\0');
  const int code = ::compress2(reinterpret_cast<Bytef*>(result.data()), &bytes,
                               reinterpret_cast<const Bytef*>(text.data()),
                               static_cast<uLong>(text.size()), Z_BEST_COMPRESSION);
  HEDDLE_CHECK(code == Z_OK, "zlib cannot compress {} bytes: {}", text.size(), code);
  result.resize(bytes);
  return result;
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) result += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return result;
}

}  // namespace

int64_t PageTexts::add(const std::string& text) {
  if (text.empty()) return -1;
  const auto [known, added] = numbers_.try_emplace(text, static_cast<int64_t>(texts_.size()));
  if (added) texts_.push_back(text);
  return known->second;
}

ordered_json PageTexts::plain() const { return texts_; }

std::vector<size_t> PageTexts::beginnings() const {
  std::vector<size_t> result;
  size_t bytes = 0;
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (i == 0 || bytes >= kPieceBytes) {
      result.push_back(i);
      bytes = 0;
    }
    bytes += texts_[i].size();
  }
  return result;
}

ordered_json PageTexts::places() const { return beginnings(); }

std::vector<std::string> PageTexts::packed() const {
  std::vector<std::string> result;
  const std::vector<size_t> begins = beginnings();
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : texts_.size();
    ordered_json piece = ordered_json::array();
    for (size_t t = begins[i]; t < end; ++t) piece.push_back(texts_[t]);
    result.push_back(
        base64(compressed(piece.dump(-1, ' ', false, ordered_json::error_handler_t::replace))));
  }
  return result;
}

}  // namespace heddle::tools
