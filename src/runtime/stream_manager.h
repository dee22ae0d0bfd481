// The streams of one device, shared by its contexts: made when they are needed, lent by kind and
// priority, given back and lent again, destroyed with the manager. Where the device makes no more,
// the one with least to do has several users: what each puts there runs in its order.
//
// Thread-safe. No lock is held while the device is asked for anything.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/error.h"
#include "runtime/event_manager.h"
#include "runtime/hal.h"

namespace heddle::runtime {

enum class StreamKind : uint8_t { compute, host_to_device, device_to_host, communication, host };

struct StreamWish {
  StreamKind kind = StreamKind::compute;
  int32_t priority = 0;  // a higher one goes first where the device can choose
  double load_ns = 0;    // what a run puts there, roughly
};

struct StreamCounts {
  int64_t made = 0, reused = 0, shared = 0;
  int64_t lost = 0;                 // broke down, and are not lent again
  int64_t lent = 0, most_lent = 0;  // a stream of two users counts twice
};

class StreamManager {
 public:
  StreamManager(const heddle_hal* hal, EventManager& events) : hal_(hal), events_(events) {}
  // All were given back, and the device has been waited for.
  ~StreamManager();
  StreamManager(const StreamManager&) = delete;

  // One by wish, no two the same; null, from there on, where the device has no more. Error (of the
  // machine): it has none.
  Result<std::vector<heddle_hal_stream*>> take(std::span<const StreamWish> wishes);
  // By wish, null among them, as take() gave them. What is there may still run.
  void give_back(std::span<heddle_hal_stream* const> streams, std::span<const StreamWish> wishes);

  // The calling thread waits for what is on one, or on all of them. Error: the stream is lost: it
  // is destroyed when its last user has given it back.
  Status sync(heddle_hal_stream* stream);
  Status sync_all() { return events_.sync_all(); }

  StreamCounts counts() const;

 private:
  struct Stream {
    heddle_hal_stream* stream = nullptr;
    StreamKind kind = StreamKind::compute;
    int32_t priority = 0;
    int64_t users = 0;
    double load_ns = 0;  // of all its users
    bool lost = false;
  };
  heddle_hal_stream* take_one(const StreamWish& wish, std::span<heddle_hal_stream* const> others);
  // Under the lock: the best of those that are not among `others`, or none; `idle`: as wished for,
  // and without users.
  Stream* find(const StreamWish& wish, std::span<heddle_hal_stream* const> others, bool idle);
  heddle_hal_stream* lend(Stream& stream, const StreamWish& wish);
  Status pass(heddle_hal_stream* stream);

  const heddle_hal* hal_;
  EventManager& events_;
  mutable std::mutex mutex_;
  std::vector<Stream> streams_;  // in the order in which they were made
  StreamCounts counts_;
};

}  // namespace heddle::runtime
