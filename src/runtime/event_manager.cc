#include "runtime/event_manager.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "runtime/device.h"

namespace heddle::runtime {

class Event {
 public:
  EventManager* manager = nullptr;
  heddle_hal_event* event = nullptr;
  bool recorded = false;
  heddle_hal_stream* stream = nullptr;      // the one that recorded it last
  std::vector<heddle_hal_stream*> waiting;  // since it was taken; without repeats
  std::atomic<int64_t> sides{0};            // after give_back(): streams that have not passed it
};

EventManager::EventManager(const heddle_hal* hal)
    : hal_(hal), calls_back_(heddle_hal_has(hal, call_on)) {}

EventManager::~EventManager() {
  HEDDLE_CHECK(counts_.lent == 0, "{} events were not given back", counts_.lent);
  for (const auto& one : all_) hal_->destroy_event(hal_->device, one->event);
}

Result<Event*> EventManager::take() {
  poll();
  Event* taken = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      taken = idle_.back();
      idle_.pop_back();
      ++counts_.reused;
    }
  }
  std::unique_ptr<Event> made;
  if (taken == nullptr) {
    made = std::make_unique<Event>();
    made->manager = this;
    if (hal_->create_event(hal_->device, &made->event) != 0)
      return hal_error(*hal_, "cannot make an event");
  }
  const std::lock_guard lock(mutex_);
  if (made) {
    taken = made.get();
    all_.push_back(std::move(made));
    ++counts_.made;
  }
  counts_.most_lent = std::max(counts_.most_lent, ++counts_.lent);
  return taken;
}

void EventManager::keep(Event* event) {
  event->recorded = false;
  event->waiting.clear();
  const std::lock_guard lock(mutex_);
  --counts_.passing;
  idle_.push_back(event);
}

void EventManager::side_passed(void* event) {
  auto* one = static_cast<Event*>(event);
  if (one->sides.fetch_sub(1, std::memory_order_acq_rel) == 1) one->manager->keep(one);
}

void EventManager::give_back(Event* event) {
  {
    const std::lock_guard lock(mutex_);
    --counts_.lent;
    ++counts_.passing;
  }
  if (!event->recorded) return keep(event);
  if (!calls_back_) {
    const std::lock_guard lock(mutex_);
    passing_.push_back(event);
    return;
  }
  std::vector<heddle_hal_stream*> sides = event->waiting;
  if (std::find(sides.begin(), sides.end(), event->stream) == sides.end())
    sides.push_back(event->stream);
  // A stream that refuses the call has broken down: the event is then never lent again.
  event->sides.store(static_cast<int64_t>(sides.size()), std::memory_order_release);
  for (heddle_hal_stream* stream : sides)
    (void)hal_->call_on(hal_->device, stream, &EventManager::side_passed, event);
}

Status EventManager::record(Event* event, heddle_hal_stream* stream) {
  if (hal_->record(hal_->device, stream, event->event) != 0)
    return hal_error(*hal_, "cannot record an event");
  event->recorded = true;
  event->stream = stream;
  return {};
}

Status EventManager::wait(Event* event, heddle_hal_stream* stream) {
  if (hal_->wait_for(hal_->device, stream, event->event) != 0)
    return hal_error(*hal_, "cannot wait for an event");
  if (std::find(event->waiting.begin(), event->waiting.end(), stream) == event->waiting.end())
    event->waiting.push_back(stream);
  return {};
}

Result<bool> EventManager::query(const Event* event) {
  int32_t done = 0;
  if (hal_->is_done(hal_->device, event->event, &done) != 0)
    return hal_error(*hal_, "cannot ask for an event");
  return done != 0;
}

Status EventManager::sync(const Event* event) {
  for (;;) {
    HEDDLE_ASSIGN_OR_RETURN(const bool done, query(event));
    if (done) return {};
    std::this_thread::yield();
  }
}

Status EventManager::call(const Event* event, Function function, void* argument) {
  if (calls_back_) {
    if (hal_->call_on(hal_->device, event->stream, function, argument) == 0) return {};
    return hal_error(*hal_, "cannot ask for a call");
  }
  const std::lock_guard lock(mutex_);
  calls_.push_back({event, function, argument});
  return {};
}

void EventManager::poll() {
  if (calls_back_) return;
  std::vector<Call> calls;
  std::vector<Event*> passing;
  {
    const std::lock_guard lock(mutex_);
    calls = std::exchange(calls_, {});
    passing = std::exchange(passing_, {});
  }
  const auto passed = [this](const Event* event) {
    const Result<bool> done = query(event);
    return done && *done;
  };
  for (Call& call : calls)
    if (call.event != nullptr && passed(call.event)) {
      call.function(call.argument);
      call.event = nullptr;
    }
  // Whether waiting streams have passed is known only after sync_all().
  for (Event*& event : passing)
    if (event->waiting.empty() && passed(event)) keep(std::exchange(event, nullptr));
  const std::lock_guard lock(mutex_);
  for (const Call& call : calls)
    if (call.event != nullptr) calls_.push_back(call);
  for (Event* event : passing)
    if (event != nullptr) passing_.push_back(event);
}

Status EventManager::sync_all() {
  std::vector<Call> calls;
  std::vector<Event*> passing;
  {
    const std::lock_guard lock(mutex_);
    calls = std::exchange(calls_, {});
    passing = std::exchange(passing_, {});
  }
  if (hal_->wait(hal_->device) != 0) return hal_error(*hal_, "cannot wait");
  for (const Call& call : calls) call.function(call.argument);
  for (Event* event : passing) keep(event);
  return {};
}

EventCounts EventManager::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace heddle::runtime
