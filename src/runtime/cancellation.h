// The wish that a run ends. One for all contexts that stand for the same one of the caller's (the
// first program's and the better one's, those of buckets): whichever runs sees it.
#pragma once

#include <atomic>
#include <memory>

namespace heddle::runtime {

// Thread-safe.
class Cancellation {
 public:
  void ask() { asked_.store(true, std::memory_order_relaxed); }
  bool is_asked() const { return asked_.load(std::memory_order_relaxed); }
  // By the run that ended for it: the next one is another.
  bool take() { return asked_.exchange(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> asked_{false};
};

}  // namespace heddle::runtime
