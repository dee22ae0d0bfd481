#include "runtime/recordings.h"

#include <algorithm>
#include <cstring>

namespace heddle::runtime {
namespace {

// Making a recording costs as much as several runs. If addresses change so often that recordings
// are rarely replayed, no more are made.
constexpr int64_t kFirstRecordings = 4, kReplaysPerRecording = 8;

}  // namespace

void Recordings::drop(Kept& kept) {
  if (kept.recording != nullptr)
    device_.hal().destroy_recording(device_.hal().device, kept.recording);
  kept.recording = nullptr;
  kept.used = 0;
}

void Recordings::clear(size_t stretches) {
  for (Stretch& stretch : stretches_)
    for (Kept& kept : stretch.kept) drop(kept);
  stretches_.assign(stretches, {});
}

bool Recordings::replay(Stretch& stretch, const Kept& kept) {
  const heddle_hal& hal = device_.hal();
  ++stretch.replays;
  on_ = hal.replay(hal.device, kept.recording) == 0;
  return on_;
}

bool Recordings::record(Stretch& stretch, Kept& kept, const std::function<bool()>& issue) {
  if (stretch.made >= kFirstRecordings && stretch.replays < stretch.made * kReplaysPerRecording)
    return false;
  const heddle_hal& hal = device_.hal();
  on_ = hal.begin_recording(hal.device) == 0;
  if (!on_) return false;
  const bool issued = issue();
  const bool ended = hal.end_recording(hal.device, &kept.recording) == 0;
  if (!ended) kept.recording = nullptr;
  on_ = issued && ended;
  ++stretch.made;
  return on_ && replay(stretch, kept);
}

bool Recordings::run(size_t stretch, std::span<void* const> addresses,
                     const std::function<bool()>& issue) {
  if (!on_) return false;
  Stretch& one = stretches_[stretch];
  for (Kept& kept : one.kept) {
    if (kept.used == 0 || kept.addresses.size() != addresses.size() ||
        std::memcmp(kept.addresses.data(), addresses.data(), addresses.size_bytes()) != 0)
      continue;
    kept.used = ++now_;
    return kept.recording != nullptr ? replay(one, kept) : record(one, kept, issue);
  }
  Kept& oldest = one.kept[0].used <= one.kept[1].used ? one.kept[0] : one.kept[1];
  drop(oldest);
  oldest.addresses.assign(addresses.begin(), addresses.end());
  oldest.used = ++now_;
  return false;
}

}  // namespace heddle::runtime
