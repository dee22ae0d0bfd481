#include "runtime/stream_manager.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "runtime/device.h"

namespace heddle::runtime {

StreamManager::~StreamManager() {
  HEDDLE_CHECK(counts_.lent == 0, "{} streams were not given back", counts_.lent);
  for (const Stream& one : streams_) hal_->destroy_stream(hal_->device, one.stream);
}

StreamManager::Stream* StreamManager::find(const StreamWish& wish,
                                           std::span<heddle_hal_stream* const> others, bool idle) {
  const auto rank = [&](const Stream& one) {
    return std::tuple(one.users > 0, one.load_ns, one.kind != wish.kind,
                      one.priority != wish.priority);
  };
  Stream* best = nullptr;
  for (Stream& one : streams_) {
    if (one.lost || std::find(others.begin(), others.end(), one.stream) != others.end()) continue;
    if (idle && (one.users > 0 || one.kind != wish.kind || one.priority != wish.priority)) continue;
    if (best == nullptr || rank(one) < rank(*best)) best = &one;
  }
  return best;
}

heddle_hal_stream* StreamManager::lend(Stream& stream, const StreamWish& wish) {
  ++stream.users;
  stream.load_ns += wish.load_ns;
  counts_.most_lent = std::max(counts_.most_lent, ++counts_.lent);
  return stream.stream;
}

heddle_hal_stream* StreamManager::take_one(const StreamWish& wish,
                                           std::span<heddle_hal_stream* const> others) {
  {
    const std::lock_guard lock(mutex_);
    if (Stream* idle = find(wish, others, true); idle != nullptr) {
      ++counts_.reused;
      return lend(*idle, wish);
    }
  }
  Stream made{nullptr, wish.kind, wish.priority};
  const bool more = hal_->create_stream(hal_->device, wish.priority, &made.stream) == 0;
  const std::lock_guard lock(mutex_);
  if (more) {
    ++counts_.made;
    return lend(streams_.emplace_back(made), wish);
  }
  Stream* least = find(wish, others, false);
  if (least == nullptr) return nullptr;
  ++(least->users > 0 ? counts_.shared : counts_.reused);
  return lend(*least, wish);
}

Result<std::vector<heddle_hal_stream*>> StreamManager::take(std::span<const StreamWish> wishes) {
  std::vector<heddle_hal_stream*> taken;
  for (const StreamWish& wish : wishes) {
    heddle_hal_stream* stream = take_one(wish, taken);
    if (stream == nullptr && taken.empty()) return hal_error(*hal_, "cannot make a stream");
    if (stream == nullptr) break;
    taken.push_back(stream);
  }
  taken.resize(wishes.size(), nullptr);
  return taken;
}

void StreamManager::give_back(std::span<heddle_hal_stream* const> streams,
                              std::span<const StreamWish> wishes) {
  std::vector<heddle_hal_stream*> over;
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < streams.size(); ++i) {
      if (streams[i] == nullptr) continue;
      const auto one = std::find_if(streams_.begin(), streams_.end(),
                                    [&](const Stream& s) { return s.stream == streams[i]; });
      HEDDLE_CHECK(one != streams_.end() && one->users > 0, "given back what was not lent");
      --counts_.lent;
      one->load_ns = --one->users == 0 ? 0 : one->load_ns - wishes[i].load_ns;
      if (!one->lost || one->users > 0) continue;
      over.push_back(one->stream);
      streams_.erase(one);
    }
  }
  for (heddle_hal_stream* stream : over) hal_->destroy_stream(hal_->device, stream);
}

Status StreamManager::pass(heddle_hal_stream* stream) {
  HEDDLE_ASSIGN_OR_RETURN(Event * event, events_.take());
  Status status = events_.record(event, stream);
  if (status) status = events_.sync(event);
  events_.give_back(event);
  return status;
}

Status StreamManager::sync(heddle_hal_stream* stream) {
  Status status = pass(stream);
  if (status) return status;
  const std::lock_guard lock(mutex_);
  for (Stream& one : streams_)
    if (one.stream == stream && !one.lost) {
      one.lost = true;
      ++counts_.lost;
    }
  return status;
}

StreamCounts StreamManager::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace heddle::runtime
