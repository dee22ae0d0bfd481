#include "page_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace heddle::tools {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else if (static_cast<unsigned char>(c) >= 32 || c == '\n')
      result += c;
  }
  return result;
}

std::string script_text(const nlohmann::ordered_json& data) {
  std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  // The text of a script ends at the first "</script", wherever it stands.
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string filled(std::string_view frame,
                   const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string result;
  while (!frame.empty()) {
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const auto& one) { return frame.starts_with(one.first); });
    if (part != parts.end()) {
      result += part->second;
      frame.remove_prefix(part->first.size());
    } else {
      result += frame.front();
      frame.remove_prefix(1);
    }
  }
  return result;
}

}  // namespace heddle::tools
