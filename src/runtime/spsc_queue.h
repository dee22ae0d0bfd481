// A bounded single-producer, single-consumer queue.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace heddle::runtime {

// Both ends wait without a lock: they spin briefly, then sleep. Each end has a cache line of its
// own and caches the last position it saw of the other end, so that not every item moves a cache
// line between cores.
template <typename T>
class SpscQueue {
 public:
  explicit SpscQueue(size_t slots) : items_(std::bit_ceil(std::max<size_t>(slots, 1))) {}

  // For the producer; waits while the queue is full.
  void push(T item) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - seen_head_ == items_.size())
      seen_head_ = wait_while(head_, tail - static_cast<uint32_t>(items_.size()));
    items_[tail & mask()] = std::move(item);
    tail_.store(tail + 1, std::memory_order_release);
    tail_.notify_one();
  }

  // For the consumer; waits for one item and takes up to `most` that are there.
  size_t pop(T* items, size_t most) {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == seen_tail_) seen_tail_ = wait_while(tail_, head);
    const size_t count = std::min<size_t>(most, seen_tail_ - head);
    for (size_t i = 0; i < count; ++i)
      items[i] = std::move(items_[(head + static_cast<uint32_t>(i)) & mask()]);
    head_.store(head + static_cast<uint32_t>(count), std::memory_order_release);
    head_.notify_one();
    return count;
  }

 private:
  static constexpr int kLooks = 200;  // brief: a spinning thread takes a core from a working one

  uint32_t mask() const { return static_cast<uint32_t>(items_.size()) - 1; }

  static uint32_t wait_while(const std::atomic<uint32_t>& counter, uint32_t value) {
    for (int i = 0; i < kLooks; ++i)
      if (const uint32_t now = counter.load(std::memory_order_acquire); now != value) return now;
    counter.wait(value, std::memory_order_acquire);
    return counter.load(std::memory_order_acquire);
  }

  std::vector<T> items_;
  alignas(64) std::atomic<uint32_t> head_{0};  // popped so far
  uint32_t seen_tail_ = 0;                     // the consumer's
  alignas(64) std::atomic<uint32_t> tail_{0};  // pushed so far
  uint32_t seen_head_ = 0;                     // the producer's
};

}  // namespace heddle::runtime
