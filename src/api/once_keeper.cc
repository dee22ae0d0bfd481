#include "api/once_keeper.h"

#include <system_error>

#include "compiler/cached.h"

namespace heddle::api {

void OnceKeeper::start() {
  const std::lock_guard lock(mutex_);
  if (started_.exchange(true)) return;
  try {
    written_ = std::async(std::launch::async, [this] {
      const auto results = executable_->once_results();
      if (results) compiler::store_once(options_, key_, *results);
    });
  } catch (const std::system_error&) {  // no thread available: the next process packs them again
  }
}

bool OnceKeeper::wait(std::chrono::milliseconds most) {
  const std::lock_guard lock(mutex_);
  return !written_.valid() || written_.wait_for(most) == std::future_status::ready;
}

}  // namespace heddle::api
