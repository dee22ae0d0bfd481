// The request to end a run. It is shared by all contexts that serve one context of the caller (of
// the first and of the better program, of the buckets): whichever of them runs sees it.
#pragma once

#include <atomic>
#include <memory>

namespace heddle::runtime {

// Thread-safe.
class Cancellation {
 public:
  void ask() { asked_.store(true, std::memory_order_relaxed); }
  bool is_asked() const { return asked_.load(std::memory_order_relaxed); }
  // Called by the run that it ended, so that the next run is not cancelled.
  bool take() { return asked_.exchange(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> asked_{false};
};

}  // namespace heddle::runtime
