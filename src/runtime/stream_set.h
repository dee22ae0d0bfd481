// The streams and events that a program's commands use on a device that has several.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "program/streams.h"
#include "runtime/device.h"

namespace heddle::runtime {

bool has_streams(const Device& device);

// Owns them; they are made once and used in every run.
class StreamSet {
 public:
  // Nothing: one stream is as good, or all that the device has. Error (of the machine): the device
  // makes none.
  static Result<std::optional<StreamSet>> make(const Device& device,
                                               const program::Program& program);
  ~StreamSet();
  StreamSet(StreamSet&& other) noexcept;
  StreamSet& operator=(StreamSet&&) = delete;

  const program::StreamPlan& plan() const { return plan_; }
  // These commands record an event, too. Error (of the machine): the device makes none.
  Status record_too(const Device& device, const std::vector<size_t>& commands);

  heddle_hal_stream* stream(size_t command) const {
    return streams_[static_cast<size_t>(plan_.stream[command])];
  }
  // The one that it records; null: nobody waits for it.
  heddle_hal_event* event(size_t command) const { return events_[command]; }
  std::span<heddle_hal_event* const> waits(size_t command) const { return waits_[command]; }
  bool is_alone(size_t command) const { return plan_.alone[command]; }

 private:
  StreamSet(const Device& device, program::StreamPlan plan)
      : hal_(&device.hal()), plan_(std::move(plan)) {}
  Status create_streams(const Device& device);
  Status create_events(const Device& device);
  const heddle_hal* hal_;
  program::StreamPlan plan_;
  std::vector<heddle_hal_stream*> streams_;
  std::vector<heddle_hal_event*> events_;  // by command
  std::vector<std::vector<heddle_hal_event*>> waits_;
};

}  // namespace heddle::runtime
