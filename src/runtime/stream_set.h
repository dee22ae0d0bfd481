// The streams and events used by a program's commands on a device with several streams.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "program/streams.h"
#include "runtime/device.h"
#include "runtime/stream_manager.h"

namespace heddle::runtime {

// Lent by the device's managers for all runs of one context. The stream with the most load has the
// highest priority; copies of ports use one stream per direction, if there are enough. Errors are
// of the machine.
class StreamSet {
 public:
  // No value: one stream is as good, or the device has no more. The device must support streams.
  static Result<std::optional<StreamSet>> make(const Device& device,
                                               const program::Program& program);
  ~StreamSet();
  StreamSet(StreamSet&& other) noexcept;
  StreamSet& operator=(StreamSet&&) = delete;

  const program::StreamPlan& plan() const { return plan_; }
  // Makes these commands record an event, too.
  Status record_too(const std::vector<size_t>& commands);

  heddle_hal_stream* stream(size_t command) const {
    return streams_[static_cast<size_t>(plan_.stream[command])];
  }
  // For copies of ports; null: the device's own stream.
  heddle_hal_stream* to_device() const { return streams_[streams_.size() - 2]; }
  heddle_hal_stream* to_host() const { return streams_.back(); }
  bool is_alone(size_t command) const { return plan_.alone[command]; }
  bool records(size_t command) const { return events_[command] != nullptr; }

  // begin(): the command's stream waits as planned. end(): the command has been put on its stream;
  // records its event, if any.
  Status begin(size_t command);
  Status end(size_t command);
  // The command's stream waits for the event of `other`, which must record one.
  Status wait(size_t command, size_t other) {
    return device_.events()->wait(events_[other], stream(command));
  }
  // As EventManager::call(), for a command that has just recorded its event.
  Status call(size_t command, EventManager::Function function, void* argument) {
    return device_.events()->call(events_[command], function, argument);
  }
  void poll() { device_.events()->poll(); }
  // After an error: marks broken streams as lost, so that they are not lent again.
  void find_lost() const;

 private:
  StreamSet(const Device& device, program::StreamPlan plan)
      : device_(device), plan_(std::move(plan)) {}
  Status take_streams(const std::vector<double>& command_ns);
  Device device_;
  program::StreamPlan plan_;
  std::vector<StreamWish> wishes_;
  std::vector<heddle_hal_stream*> streams_;  // of the plan, then of the ports; null: none
  std::vector<Event*> events_;               // by command
};

}  // namespace heddle::runtime
