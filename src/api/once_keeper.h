// Private to api: stores prepared weights in the compile cache after the first run.
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

// Thread-safe. The destructor waits until they are written, which takes as long as copying them.
class OnceKeeper {
 public:
  // Does nothing until the first ran().
  OnceKeeper(std::shared_ptr<runtime::Executable> executable, compiler::Options options,
             const cache::Key& key)
      : executable_(std::move(executable)), options_(std::move(options)), key_(key) {}
  // A run of the executable has succeeded.
  void ran() {
    if (!started_.load(std::memory_order_relaxed)) start();
  }
  // Waits at most `most`; returns whether nothing is being written.
  bool wait(std::chrono::milliseconds most);

 private:
  void start();
  std::shared_ptr<runtime::Executable> executable_;
  compiler::Options options_;
  cache::Key key_;
  std::atomic<bool> started_{false};
  std::mutex mutex_;  // protects the following
  std::future<void> written_;
};

}  // namespace heddle::api
