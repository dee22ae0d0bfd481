// Arrays on the device: dense, row-major, 64-byte aligned, in memory of the host.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "client.h"
#include "event.h"
#include "types.h"

namespace heddle::pjrt {

// A piece of memory; the last buffer or run that holds it gives it back.
class Storage {
 public:
  static constexpr size_t kAlignment = 64;
  Storage(int64_t bytes, std::shared_ptr<MemoryCounts> counts);
  // The caller's memory; `release` is called when nothing here uses it any more.
  Storage(void* data, std::function<void()> release) : data_(data), release_(std::move(release)) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  void* data() const { return data_; }
  bool is_ours() const { return counts_ != nullptr; }
  // How many runs with a place in the order of the client's worker hold it: one that gets its place
  // later may write over it. Never more than do; a run counts no longer before it lets go.
  std::atomic<int64_t> waiting_runs{0};
  static bool is_aligned(const void* data) {
    return reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
  }

 private:
  void* data_;
  int64_t bytes_ = 0;
  std::shared_ptr<MemoryCounts> counts_;  // null: the caller's memory
  std::function<void()> release_;
};

}  // namespace heddle::pjrt

struct PJRT_Buffer {
  using Storage = heddle::pjrt::Storage;
  using Moment = heddle::pjrt::Moment;

  PJRT_Buffer(PJRT_Memory* memory, heddle::pjrt::ArrayShape shape, std::shared_ptr<Storage> storage,
              std::shared_ptr<Moment> ready = nullptr);

  PJRT_Memory* const memory;
  const heddle::pjrt::ArrayShape shape;
  const std::shared_ptr<Moment> ready;  // null: its values are there

  // Throws where it was deleted or donated.
  std::shared_ptr<Storage> hold() const;
  // The same after waiting for the values; throws their error.
  std::shared_ptr<Storage> wait() const;
  // Ends its life: gives the memory to the caller. Null: it was deleted before. `exclusive`:
  // nobody else looks at the memory from now on, but for runs in the worker's order.
  std::shared_ptr<Storage> take(bool* exclusive = nullptr);
  bool is_deleted() const;
  void add_reference();
  void drop_reference();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Storage> storage_;  // null: deleted or donated
  std::shared_ptr<Storage> shared_;   // while there are external references
  int64_t references_ = 0;
};

namespace heddle::pjrt {
// Of the arguments of a function: the memory itself, or the device's default.
PJRT_Memory* memory_of(PJRT_Memory* memory, PJRT_Device* device);
}  // namespace heddle::pjrt
