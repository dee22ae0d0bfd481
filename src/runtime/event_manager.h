// The events of one device, shared by its contexts: created on demand, lent, and lent again when
// both sides have passed: the stream that recorded the event last, and the streams that wait for
// it.
//
// Thread-safe, but one event may be used by one thread at a time. No lock is held during a call to
// the device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "runtime/hal.h"

namespace heddle::runtime {

class Event;

struct EventCounts {
  int64_t made = 0, reused = 0;
  int64_t lent = 0, most_lent = 0;
  int64_t passing = 0;  // given back, but some side has not passed yet
};

class EventManager {
 public:
  using Function = void (*)(void* argument);

  explicit EventManager(const heddle_hal* hal);
  // All events must have been given back, and the device waited for.
  ~EventManager();
  EventManager(const EventManager&) = delete;

  // All errors are of the machine. A null stream means the stream of launch() and copy().
  Result<Event*> take();
  // After this no stream may start to wait for the event, and nobody may query it.
  void give_back(Event* event);
  Status record(Event* event, heddle_hal_stream* stream);
  // Later work on the stream runs after the last record.
  Status wait(Event* event, heddle_hal_stream* stream);
  Result<bool> query(const Event* event);  // never recorded: true
  Status sync(const Event* event);         // the calling thread waits
  // Calls function(argument) when the last record has passed, as call_on() of the HAL does. On a
  // device without call_on(), poll() makes the call; it must come before the event is recorded
  // again. `argument` must live until the device has been waited for.
  Status call(const Event* event, Function function, void* argument);
  // Handles passed events on a device without call_on(); on others it does nothing.
  void poll();
  // Waits for the device: all work submitted before has then passed.
  Status sync_all();

  EventCounts counts() const;

 private:
  struct Call {
    const Event* event;
    Function function;
    void* argument;
  };
  static void side_passed(void* event);
  void keep(Event* event);  // for the next take()

  const heddle_hal* hal_;
  const bool calls_back_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Event>> all_;
  std::vector<Event*> idle_;
  // For a device without call_on().
  std::vector<Event*> passing_;
  std::vector<Call> calls_;
  EventCounts counts_;
};

}  // namespace heddle::runtime
