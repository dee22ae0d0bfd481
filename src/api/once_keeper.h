// Private to api: puts prepared weights into the compile cache, behind the first run that made
// them.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>

#include "cache/object_cache.h"
#include "compiler/compiler.h"
#include "runtime/executor.h"

namespace heddle::api {

// Thread-safe. Its end waits until they are written, which is as long as it takes to copy them.
class OnceKeeper {
 public:
  // Does nothing until ran(), and then only the first time.
  OnceKeeper(std::shared_ptr<runtime::Executable> executable, compiler::Options options,
             const cache::Key& key)
      : executable_(std::move(executable)), options_(std::move(options)), key_(key) {}
  // A run of the executable has ended well.
  void ran() {
    if (!started_.load(std::memory_order_relaxed)) start();
  }
  // Whether nothing is being written any more; waits for it, `most` at most.
  bool wait(std::chrono::milliseconds most);

 private:
  void start();
  std::shared_ptr<runtime::Executable> executable_;
  compiler::Options options_;
  cache::Key key_;
  std::atomic<bool> started_{false};
  std::mutex mutex_;  // of what follows
  std::future<void> written_;
};

}  // namespace heddle::api
