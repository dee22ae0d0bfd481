// The streams of one device, shared by its contexts: created on demand, lent by kind and priority,
// given back and lent again, destroyed with the manager. If the device can create no more, the
// stream with the least load gets several users; the work of each still runs in order.
//
// Thread-safe. No lock is held during a call to the device.
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
  double load_ns = 0;    // rough time of the work that a run puts there
};

struct StreamCounts {
  int64_t made = 0, reused = 0, shared = 0;
  int64_t lost = 0;                 // broken streams; not lent again
  int64_t lent = 0, most_lent = 0;  // a stream with two users counts twice
};

class StreamManager {
 public:
  StreamManager(const heddle_hal* hal, EventManager& events) : hal_(hal), events_(events) {}
  // All streams must have been given back, and the device waited for.
  ~StreamManager();
  StreamManager(const StreamManager&) = delete;

  // One stream per wish, all different; null, from there on, if the device has no more. Error
  // (machine): there is none at all.
  Result<std::vector<heddle_hal_stream*>> take(std::span<const StreamWish> wishes);
  // Arguments as in take(), including null streams. Their work may still be running.
  void give_back(std::span<heddle_hal_stream* const> streams, std::span<const StreamWish> wishes);

  // The calling thread waits for the work on one stream, or on all. Error: the stream is lost; it
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
  // Call with the lock held. The best stream not among `others`, or none; `idle`: only an exact
  // match without users.
  Stream* find(const StreamWish& wish, std::span<heddle_hal_stream* const> others, bool idle);
  heddle_hal_stream* lend(Stream& stream, const StreamWish& wish);
  Status pass(heddle_hal_stream* stream);

  const heddle_hal* hal_;
  EventManager& events_;
  mutable std::mutex mutex_;
  std::vector<Stream> streams_;  // in order of creation
  StreamCounts counts_;
};

}  // namespace heddle::runtime
