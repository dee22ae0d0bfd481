// Finds the stretches of a command list that a device may record, and issues and replays them.
#include <algorithm>

#include "runtime/command_list.h"

namespace heddle::runtime {
namespace {

constexpr int64_t kMostCopies = 256;  // of one concatenation in a recording

}  // namespace

std::vector<bool> CommandList::jump_targets() const {
  std::vector<bool> result(records_.size() + 1);
  for (const Record& record : records_)
    if (record.kind == Kind::test || record.kind == Kind::again || record.kind == Kind::go)
      result[record.jump] = true;
  for (const uint32_t target : targets_) result[target] = true;
  return result;
}

bool CommandList::is_recordable(const Record& record) const {
  switch (record.kind) {
    case Kind::launch:
      return record.together == 0;
    case Kind::copy:
      return stays_on_device(record);
    case Kind::concatenate: {
      const JoinRecord& join = joins_[record.index];
      return !join.on_host &&
             join.rows * static_cast<int64_t>(join.row_bytes.size()) <= kMostCopies;
    }
    default:
      return record.kind == Kind::nothing;
  }
}

// Stretches are as long as possible.
void CommandList::find_stretches() {
  stretches_are_found_ = true;
  stretches_.clear();
  for (Record& record : records_) record.stretch = 0;
  const std::vector<bool> targets = jump_targets();
  for (size_t first = 0, end = 0; recordings_.on() && first < records_.size(); first = end) {
    size_t commands = 0;
    for (end = first; end < records_.size() && is_recordable(records_[end]); ++end) {
      if (end > first && targets[end]) break;
      commands += records_[end].kind != Kind::nothing;
    }
    if (commands >= kFewestRecorded) {
      const auto slot = [&](size_t r) {
        return r < records_.size() ? static_cast<size_t>(records_[r].launch.buffers - slots_.data())
                                   : slots_.size();
      };
      stretches_.push_back({first, end, slot(first), slot(end) - slot(first)});
      records_[first].stretch = static_cast<uint32_t>(stretches_.size());
    }
    if (end == first) ++end;
  }
  recordings_.clear(stretches_.size());
  const bool of_run = section_->commands == &program_->commands && program_->pool_blocks.empty();
  if (of_run && !stretches_.empty() && !branches_are_made_)
    branches_ = Branches::make(device_, *program_);
  branches_are_made_ = branches_are_made_ || (of_run && !stretches_.empty());
}

bool CommandList::is_recorded() {
  if (!stretches_are_found_) find_stretches();
  return recordings_.on() && !stretches_.empty();
}

// On `stream`; null: the device's own stream.
bool CommandList::issue(const Record& record, heddle_hal_stream* stream) {
  const heddle_hal& hal = device_.hal();
  const auto copy = [&](void* to, const void* from, int64_t bytes) -> Status {
    if ((stream == nullptr ? hal.copy(hal.device, to, from, bytes)
                           : hal.copy_on(hal.device, stream, to, from, bytes)) == 0)
      return {};
    return device_.last_error("cannot copy");
  };
  void* const* slots = record.launch.buffers;
  if (record.kind == Kind::launch)
    return (stream == nullptr ? hal.launch(hal.device, &record.launch)
                              : hal.launch_on(hal.device, stream, &record.launch)) == 0;
  if (record.kind == Kind::copy) return copy(slots[1], slots[0], record.launch.tasks).has_value();
  return record.kind != Kind::concatenate || copy_pieces(record, copy).has_value();
}

// Called while the device records.
bool CommandList::issue(const Stretch& stretch) {
  // Command of the section; all commands inside a loop belong to the loop.
  const auto command_at = [&](size_t record) {
    const auto above = std::upper_bound(first_record_.begin(), first_record_.end(), record);
    return static_cast<size_t>(above - first_record_.begin()) - 1;
  };
  const size_t first = command_at(stretch.first), end = command_at(stretch.end - 1) + 1;
  if (branches_ == nullptr || !branches_->divide(first, end)) {
    bool issued = true;
    for (size_t at = stretch.first; at < stretch.end && issued; ++at)
      issued = issue(records_[at], nullptr);
    return issued;
  }
  bool issued = branches_->fork(first, end);
  for (size_t command = first; command < end && issued; ++command) {
    issued = branches_->begin(command, first);
    const size_t stop = std::min<size_t>(first_record_[command + 1], stretch.end);
    for (size_t at = std::max<size_t>(first_record_[command], stretch.first); at < stop && issued;
         ++at)
      issued = issue(records_[at], branches_->stream(command));
    issued = issued && branches_->end(command);
  }
  return issued && branches_->join(first, end);
}

bool CommandList::replayed(const Record& first, size_t* next) {
  const Stretch& stretch = stretches_[first.stretch - 1];
  const std::span<void* const> addresses(slots_.data() + stretch.first_slot, stretch.slots);
  if (!recordings_.run(first.stretch - 1, addresses, [&] { return issue(stretch); })) return false;
  *next = stretch.end;
  return true;
}

}  // namespace heddle::runtime
