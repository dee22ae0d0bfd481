#include "runtime/stream_set.h"

#include <algorithm>
#include <utility>

#include "program/link_times.h"
#include "runtime/command_ns.h"
#include "target/target.h"

namespace heddle::runtime {

using program::Program;

std::vector<double> command_ns(const Program& program) {
  // A program made by hand may name no target.
  const Result<target::Target> target =
      program.own_memory ? target::parse_target(program.target) : target::Target();
  if (!target) return program::rough_ns(program, program.commands);
  return program::rough_ns(program, program.commands,
                           [&](double bytes) { return target->memory_bytes_of_link(bytes); });
}

Result<std::optional<StreamSet>> StreamSet::make(const Device& device, const Program& program) {
  const std::vector<double> ns = command_ns(program);
  program::StreamOptions options;
  for (;;) {
    program::StreamPlan plan = program::plan_streams(program, program.commands, ns, options);
    if (plan.streams < 2) return std::optional<StreamSet>();
    StreamSet set(device, std::move(plan));
    HEDDLE_RETURN_IF_ERROR(set.take_streams(ns));
    const auto of_plan = set.streams_.begin() + set.plan_.streams;
    options.most_streams = std::find(set.streams_.begin(), of_plan, nullptr) - set.streams_.begin();
    if (options.most_streams < set.plan_.streams) continue;  // the device has no more
    std::vector<size_t> recorded;
    set.events_.assign(set.plan_.recorded.size(), nullptr);
    for (size_t i = 0; i < set.events_.size(); ++i)
      if (set.plan_.recorded[i]) recorded.push_back(i);
    HEDDLE_RETURN_IF_ERROR(set.record_too(recorded));
    return std::optional<StreamSet>(std::move(set));
  }
}

Status StreamSet::take_streams(const std::vector<double>& command_ns) {
  std::vector<StreamWish> wishes(static_cast<size_t>(plan_.streams));
  for (size_t i = 0; i < command_ns.size(); ++i)
    wishes[static_cast<size_t>(plan_.stream[i])].load_ns += plan_.alone[i] ? 0 : command_ns[i];
  std::max_element(wishes.begin(), wishes.end(), [](const StreamWish& a, const StreamWish& b) {
    return a.load_ns < b.load_ns;
  })->priority = 1;
  for (const StreamKind kind : {StreamKind::host_to_device, StreamKind::device_to_host})
    wishes.push_back({kind, 0, 0});
  HEDDLE_ASSIGN_OR_RETURN(streams_, device_.streams()->take(wishes));
  wishes_ = std::move(wishes);
  return {};
}

Status StreamSet::record_too(const std::vector<size_t>& commands) {
  for (size_t command : commands)
    if (events_[command] == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(events_[command], device_.events()->take());
    }
  return {};
}

Status StreamSet::begin(size_t command) {
  for (const size_t other : plan_.waits[command]) HEDDLE_RETURN_IF_ERROR(wait(command, other));
  return {};
}

Status StreamSet::end(size_t command) {
  if (!records(command)) return {};
  return device_.events()->record(events_[command], stream(command));
}

void StreamSet::find_lost() const {
  for (heddle_hal_stream* stream : streams_)
    if (stream != nullptr) (void)device_.streams()->sync(stream);
}

StreamSet::~StreamSet() {
  for (Event* event : events_)
    if (event != nullptr) device_.events()->give_back(event);
  if (!streams_.empty()) device_.streams()->give_back(streams_, wishes_);
}

StreamSet::StreamSet(StreamSet&& other) noexcept
    : device_(other.device_),
      plan_(std::move(other.plan_)),
      wishes_(std::move(other.wishes_)),
      streams_(std::exchange(other.streams_, {})),
      events_(std::exchange(other.events_, {})) {}

}  // namespace heddle::runtime
