#include "api/log.h"

#include <atomic>
#include <mutex>

#include "api/c_status.h"

namespace heddle::api {
namespace {

struct Log {
  std::mutex mutex;  // protects the two below; held during a call of the function
  heddle_log_function function = nullptr;
  void* context = nullptr;
  std::atomic<int> most = HEDDLE_LOG_NOTHING;
};

// Never destroyed: our threads may log while the process ends.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

thread_local bool is_inside = false;  // this thread is inside the caller's function

}  // namespace

bool is_logged(LogLevel level) {
  return static_cast<int>(level) <= the_log().most.load(std::memory_order_relaxed) && !is_inside;
}

void write_log(LogLevel level, std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  if (log.function == nullptr || static_cast<int>(level) > log.most.load()) return;
  const heddle_log_message message{sizeof(heddle_log_message), static_cast<int32_t>(level),
                                   text.c_str()};
  is_inside = true;
  log.function(&message, log.context);
  is_inside = false;
}

}  // namespace heddle::api

extern "C" heddle_status* heddle_set_log(heddle_log_function function, void* context,
                                         int32_t most) {
  using namespace heddle;  // NOLINT: the C functions are in no namespace
  return api::guarded(__func__, [&](const api::Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.in_range("most", most, HEDDLE_LOG_NOTHING, HEDDLE_LOG_DEBUG));
    if (api::is_inside)
      return call.wrong("function", "set by the function that logs", "a call from elsewhere");
    api::Log& log = api::the_log();
    const std::lock_guard lock(log.mutex);
    log.function = most == HEDDLE_LOG_NOTHING ? nullptr : function;
    log.context = context;
    log.most = log.function == nullptr ? HEDDLE_LOG_NOTHING : most;
    return {};
  });
}
