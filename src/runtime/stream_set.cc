#include "runtime/stream_set.h"

#include <utility>

namespace heddle::runtime {

using program::Program;

bool has_streams(const Device& device) {
  const heddle_hal& hal = device.hal();
  return heddle_hal_has(&hal, create_stream) && heddle_hal_has(&hal, destroy_stream) &&
         heddle_hal_has(&hal, launch_on) && heddle_hal_has(&hal, copy_on) &&
         heddle_hal_has(&hal, create_event) && heddle_hal_has(&hal, destroy_event) &&
         heddle_hal_has(&hal, record) && heddle_hal_has(&hal, wait_for) &&
         heddle_hal_has(&hal, is_done);
}

Result<std::optional<StreamSet>> StreamSet::make(const Device& device, const Program& program) {
  const std::vector<double> ns = program::rough_ns(program, program.commands);
  program::StreamPlan plan = program::plan_streams(program, program.commands, ns);
  if (plan.streams < 2) return std::optional<StreamSet>();
  StreamSet set(device, std::move(plan));
  HEDDLE_RETURN_IF_ERROR(set.create_streams(device));
  const auto count = static_cast<int64_t>(set.streams_.size());
  if (count < set.plan_.streams) {  // the device has no more
    program::StreamOptions fewer;
    fewer.most_streams = count;
    set.plan_ = program::plan_streams(program, program.commands, ns, fewer);
    if (set.plan_.streams < 2) return std::optional<StreamSet>();
  }
  HEDDLE_RETURN_IF_ERROR(set.create_events(device));
  return std::optional<StreamSet>(std::move(set));
}

Status StreamSet::create_streams(const Device& device) {
  for (int64_t i = 0; i < plan_.streams; ++i) {
    heddle_hal_stream* stream = nullptr;
    if (hal_->create_stream(hal_->device, 0, &stream) != 0) {
      if (streams_.empty()) return device.last_error("cannot make a stream");
      break;
    }
    streams_.push_back(stream);
  }
  return {};
}

Status StreamSet::create_events(const Device& device) {
  events_.assign(plan_.recorded.size(), nullptr);
  std::vector<size_t> recorded;
  for (size_t i = 0; i < events_.size(); ++i)
    if (plan_.recorded[i]) recorded.push_back(i);
  HEDDLE_RETURN_IF_ERROR(record_too(device, recorded));
  for (const std::vector<size_t>& commands : plan_.waits) {
    waits_.emplace_back();
    for (size_t command : commands) waits_.back().push_back(events_[command]);
  }
  return {};
}

Status StreamSet::record_too(const Device& device, const std::vector<size_t>& commands) {
  for (size_t command : commands)
    if (events_[command] == nullptr && hal_->create_event(hal_->device, &events_[command]) != 0)
      return device.last_error("cannot make an event");
  return {};
}

StreamSet::~StreamSet() {
  for (heddle_hal_event* event : events_)
    if (event != nullptr) hal_->destroy_event(hal_->device, event);
  for (heddle_hal_stream* stream : streams_) hal_->destroy_stream(hal_->device, stream);
}

StreamSet::StreamSet(StreamSet&& other) noexcept
    : hal_(other.hal_),
      plan_(std::move(other.plan_)),
      streams_(std::exchange(other.streams_, {})),
      events_(std::exchange(other.events_, {})),
      waits_(std::move(other.waits_)) {}

}  // namespace heddle::runtime
