// Private to api: messages for the caller's log (heddle_info.h).
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace heddle::api {

enum class LogLevel { nothing, warning, info, debug };

bool is_logged(LogLevel level);  // fast: nearly always false
void write_log(LogLevel level, std::string text);

// log(LogLevel::info, "opened {}", name)
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_logged(level)) write_log(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace heddle::api
