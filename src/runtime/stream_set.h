// The streams and events that a program's commands use on a device that has several.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "program/streams.h"
#include "runtime/device.h"
#include "runtime/stream_manager.h"

namespace heddle::runtime {

// Lent by the device's managers, for all runs of one context. The stream with most to do has the
// highest priority; copies of ports have one stream each way, where there are so many. Errors are
// of the machine.
class StreamSet {
 public:
  // Nothing: one stream is as good, or all that the device has. The device has streams.
  static Result<std::optional<StreamSet>> make(const Device& device,
                                               const program::Program& program);
  ~StreamSet();
  StreamSet(StreamSet&& other) noexcept;
  StreamSet& operator=(StreamSet&&) = delete;

  const program::StreamPlan& plan() const { return plan_; }
  // These commands record an event, too.
  Status record_too(const std::vector<size_t>& commands);

  heddle_hal_stream* stream(size_t command) const {
    return streams_[static_cast<size_t>(plan_.stream[command])];
  }
  // Of ports; null: the device's own.
  heddle_hal_stream* to_device() const { return streams_[streams_.size() - 2]; }
  heddle_hal_stream* to_host() const { return streams_.back(); }
  bool is_alone(size_t command) const { return plan_.alone[command]; }
  bool records(size_t command) const { return events_[command] != nullptr; }

  // Its stream waits for what the plan says; it is behind on its stream, and may be waited for.
  Status begin(size_t command);
  Status end(size_t command);
  // Its stream waits for `other`, which records.
  Status wait(size_t command, size_t other) {
    return device_.events()->wait(events_[other], stream(command));
  }
  // As EventManager::call(), behind a command that has just recorded.
  Status call(size_t command, EventManager::Function function, void* argument) {
    return device_.events()->call(events_[command], function, argument);
  }
  void poll() { device_.events()->poll(); }
  // After an error: streams that have broken down are not lent again.
  void find_lost() const;

 private:
  StreamSet(const Device& device, program::StreamPlan plan)
      : device_(device), plan_(std::move(plan)) {}
  Status take_streams(const std::vector<double>& command_ns);
  Device device_;
  program::StreamPlan plan_;
  std::vector<StreamWish> wishes_;
  std::vector<heddle_hal_stream*> streams_;  // of the plan, then of the ports; null: there is none
  std::vector<Event*> events_;               // by command
};

}  // namespace heddle::runtime
