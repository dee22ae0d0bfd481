#include "runtime/branches.h"

#include <algorithm>

#include "runtime/command_ns.h"

namespace heddle::runtime {

std::unique_ptr<Branches> Branches::make(const Device& device, const program::Program& program) {
  if (device.streams() == nullptr) return nullptr;
  program::StreamPlan plan =
      program::plan_streams(program, program.commands, command_ns(program), {});
  if (plan.streams < 2) return nullptr;
  std::unique_ptr<Branches> made(new Branches(device, std::move(plan)));
  return made->take() ? std::move(made) : nullptr;
}

Branches::Branches(const Device& device, program::StreamPlan plan)
    : device_(device),
      plan_(std::move(plan)),
      streams_(static_cast<size_t>(plan_.streams)),
      events_(plan_.recorded.size()),
      ends_(static_cast<size_t>(plan_.streams)) {}

// The streams are not lent to anybody else: work that others put on them would be recorded, too.
bool Branches::take() {
  const heddle_hal& hal = device_.hal();
  const auto event = [&](heddle_hal_event** made) { return !hal.create_event(hal.device, made); };
  for (heddle_hal_stream*& stream : streams_)
    if (hal.create_stream(hal.device, 0, &stream) != 0) return false;
  for (heddle_hal_event*& end : ends_)
    if (!event(&end)) return false;
  for (size_t i = 0; i < events_.size(); ++i)
    if (plan_.recorded[i] && !event(&events_[i])) return false;
  return event(&begin_);
}

Branches::~Branches() {
  const heddle_hal& hal = device_.hal();
  events_.insert(events_.end(), ends_.begin(), ends_.end());
  events_.push_back(begin_);
  for (heddle_hal_event* event : events_)
    if (event != nullptr) hal.destroy_event(hal.device, event);
  for (heddle_hal_stream* stream : streams_)
    if (stream != nullptr) hal.destroy_stream(hal.device, stream);
}

std::vector<bool> Branches::used(size_t first, size_t end) const {
  std::vector<bool> result(streams_.size());
  for (size_t i = first; i < end; ++i) result[of(i)] = true;
  return result;
}

bool Branches::divide(size_t first, size_t end) const {
  for (size_t i = first; i < end; ++i)
    if (plan_.alone[i]) return false;
  const std::vector<bool> streams = used(first, end);
  return std::count(streams.begin(), streams.end(), true) > 1;
}

bool Branches::record(heddle_hal_stream* stream, heddle_hal_event* event) const {
  return device_.hal().record(device_.hal().device, stream, event) == 0;
}
bool Branches::wait(heddle_hal_stream* stream, heddle_hal_event* event) const {
  return device_.hal().wait_for(device_.hal().device, stream, event) == 0;
}

bool Branches::fork(size_t first, size_t end) {
  const std::vector<bool> streams = used(first, end);
  bool done = record(nullptr, begin_);
  for (size_t s = 0; s < streams.size() && done; ++s)
    done = !streams[s] || wait(streams_[s], begin_);
  return done;
}

// Commands before `first` are ordered by the fork, so it waits only for those of this recording.
bool Branches::begin(size_t command, size_t first) {
  bool done = true;
  for (const size_t other : plan_.waits[command])
    if (done && other >= first) done = wait(stream(command), events_[other]);
  return done;
}

bool Branches::end(size_t command) {
  return events_[command] == nullptr || record(stream(command), events_[command]);
}

bool Branches::join(size_t first, size_t end) {
  const std::vector<bool> streams = used(first, end);
  bool done = true;
  for (size_t s = 0; s < streams.size() && done; ++s)
    done = !streams[s] || (record(streams_[s], ends_[s]) && wait(nullptr, ends_[s]));
  return done;
}

}  // namespace heddle::runtime
