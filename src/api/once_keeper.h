// Private to api: puts prepared weights into the compile cache, behind the first run that made
// them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "cache/object_cache.h"
#include "compiler/compiler.h"
#include "runtime/executor.h"

namespace heddle::api {

// Thread-safe. Its end waits until they are written, a memory copy of them long.
class OnceKeeper {
 public:
  // Does nothing until ran(), and then only the first time.
  OnceKeeper(std::shared_ptr<runtime::Executable> executable, compiler::Options options,
             const cache::Key& key)
      : executable_(std::move(executable)), options_(std::move(options)), key_(key) {}
  ~OnceKeeper();
  // A run of the executable has ended well.
  void ran() {
    if (!started_.load(std::memory_order_relaxed)) start();
  }

 private:
  void start();
  std::shared_ptr<runtime::Executable> executable_;
  compiler::Options options_;
  cache::Key key_;
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace heddle::api
