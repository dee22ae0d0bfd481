// The events of one device, shared by its contexts: made when they are needed, lent, and lent again
// when both sides have passed: the stream that recorded one last, and those that wait for it.
//
// Thread-safe, but that one event belongs to one thread at a time. No lock is held while the device
// is asked for anything.
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
  int64_t passing = 0;  // given back, but a side of it has not passed yet
};

class EventManager {
 public:
  using Function = void (*)(void* argument);

  explicit EventManager(const heddle_hal* hal);
  // All were given back, and the device has been waited for.
  ~EventManager();
  EventManager(const EventManager&) = delete;

  // Errors of all of them: of the machine. A null stream is that of launch() and copy().
  Result<Event*> take();
  // No other stream will be told to wait for it, and nobody asks for it.
  void give_back(Event* event);
  Status record(Event* event, heddle_hal_stream* stream);
  // What follows on the stream comes behind the last record.
  Status wait(Event* event, heddle_hal_stream* stream);
  Result<bool> query(const Event* event);  // never recorded: true
  Status sync(const Event* event);         // the calling thread waits
  // Calls function(argument) when the last record has passed, as call_on() of the HAL does; by a
  // device without it in poll(), which must come before the event is recorded again. `argument`
  // lives until the device has been waited for.
  Status call(const Event* event, Function function, void* argument);
  // Asks for what the device does not tell by itself. At once where it does.
  void poll();
  // The device has been waited for: all that was asked of it before has passed.
  Status sync_all();

  EventCounts counts() const;

 private:
  struct Call {
    const Event* event;
    Function function;
    void* argument;
  };
  static void side_passed(void* event);
  void keep(Event* event);  // for the next take

  const heddle_hal* hal_;
  const bool calls_back_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Event>> all_;
  std::vector<Event*> idle_;
  // Of a device that does not call back.
  std::vector<Event*> passing_;
  std::vector<Call> calls_;
  EventCounts counts_;
};

}  // namespace heddle::runtime
