#include "runtime/race_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::runtime {

void RaceCheck::grow(size_t streams) {
  if (clocks_.size() < streams) clocks_.resize(streams, observed_);
  for (Clock& clock : clocks_)
    if (clock.size() < clocks_.size()) clock.resize(clocks_.size(), 0);
}

const RaceCheck::Clock& RaceCheck::advance(size_t stream) {
  grow(stream + 1);
  ++clocks_[stream][stream];
  return clocks_[stream];
}

const RaceCheck::Clock& RaceCheck::clock(size_t stream) {
  grow(stream + 1);
  return clocks_[stream];
}

void RaceCheck::join(size_t stream, const Clock& clock) {
  grow(std::max(stream + 1, clock.size()));
  Clock& mine = clocks_[stream];
  for (size_t i = 0; i < clock.size(); ++i) mine[i] = std::max(mine[i], clock[i]);
}

void RaceCheck::observe(const Clock& clock) {
  if (observed_.size() < clock.size()) observed_.resize(clock.size(), 0);
  for (size_t i = 0; i < clock.size(); ++i) observed_[i] = std::max(observed_[i], clock[i]);
  for (size_t stream = 0; stream < clocks_.size(); ++stream) join(stream, clock);
}

void RaceCheck::forget() {
  observed_.clear();
  accesses_.clear();
  clocks_.clear();
}

std::optional<std::string> RaceCheck::access(size_t stream, const void* begin, int64_t bytes,
                                             bool writes, const std::string& what) {
  if (bytes <= 0) return std::nullopt;
  const Clock& now = clock(stream);
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const Access mine{first, first + static_cast<uintptr_t>(bytes), stream, now[stream], writes,
                    what};
  std::optional<std::string> race;
  for (const Access& other : accesses_) {
    if (other.begin >= mine.end || mine.begin >= other.end || !(writes || other.writes)) continue;
    if (other.stream == stream || now[other.stream] >= other.number) continue;
    race = fmt::format("{} of stream {} {} bytes that {} of stream {} {}, and no event orders them",
                       what, stream, writes ? "writes" : "reads", other.what, other.stream,
                       other.writes ? "writes" : "reads");
    break;
  }
  accesses_.push_back(mine);
  return race;
}

}  // namespace heddle::runtime
