#include "api/once_keeper.h"

#include <system_error>

#include "compiler/cached.h"

namespace heddle::api {

OnceKeeper::~OnceKeeper() {
  if (thread_.joinable()) thread_.join();
}

void OnceKeeper::start() {
  if (started_.exchange(true)) return;
  try {
    thread_ = std::thread([this] {
      auto results = executable_->once_results();
      if (results) compiler::store_once(options_, key_, *results);
    });
  } catch (const std::system_error&) {  // no thread to be had: the next start packs them again
  }
}

}  // namespace heddle::api
