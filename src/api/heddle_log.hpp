// The log of heddle.hpp, which includes this header.
#ifndef HEDDLE_API_HEDDLE_LOG_HPP
#define HEDDLE_API_HEDDLE_LOG_HPP

#include <functional>
#include <mutex>
#include <string_view>

#include "heddle_error.hpp"

namespace heddle {
inline namespace HEDDLE_INLINE_NAMESPACE {

enum class LogLevel {
  nothing = HEDDLE_LOG_NOTHING,
  warning = HEDDLE_LOG_WARNING,
  info = HEDDLE_LOG_INFO,
  debug = HEDDLE_LOG_DEBUG,
};
using LogFunction = std::function<void(LogLevel, std::string_view)>;

namespace detail {

struct Log {
  std::mutex mutex;  // held while it is set
  LogFunction function;
};
inline Log& the_log() {
  static Log& log = *new Log;  // never destroyed: threads may log while the process ends
  return log;
}
// An exception of the caller's function calls std::terminate.
inline void write_log(const heddle_log_message* message, void* function) noexcept {
  (*static_cast<LogFunction*>(function))(static_cast<LogLevel>(message->level), message->text);
}

}  // namespace detail

// Calls `function` with messages of level `most` and below, from any thread, one at a time; see
// heddle_set_log. It must not throw. LogLevel::nothing: stops logging.
inline Result<void> set_log(LogLevel most, LogFunction function = {}) {
  detail::Log& log = detail::the_log();
  const std::lock_guard<std::mutex> lock(log.mutex);
  HEDDLE_CHECK_STATUS(void, heddle_set_log(nullptr, nullptr, HEDDLE_LOG_NOTHING));
  log.function = std::move(function);
  if (!log.function) return detail::done();
  return detail::checked(
      heddle_set_log(detail::write_log, &log.function, static_cast<std::int32_t>(most)));
}

}  // namespace HEDDLE_INLINE_NAMESPACE
}  // namespace heddle

#endif  // HEDDLE_API_HEDDLE_LOG_HPP
