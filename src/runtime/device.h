// Device: a checked HAL that returns Status instead of codes, and memory blocks that free
// themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "runtime/hal.h"

namespace heddle::runtime {

class EventManager;
class StreamManager;

// The last error of the calling thread, as an Error of the machine's kind.
tl::unexpected<Error> hal_error(const heddle_hal& hal, const char* what);

class Device {
 public:
  // Error: a required member is missing, or the version is not ours. `hal` must outlive the device
  // and everything made with it.
  static Result<Device> make(const heddle_hal* hal);

  const heddle_hal& hal() const { return *hal_; }
  // Whether the host can read its memory only by copying (hal.h).
  bool has_own_memory() const { return heddle_hal_has(hal_, own_memory); }
  // Whether the device can record launches and replay them.
  bool has_recordings() const {
    return heddle_hal_has(hal_, begin_recording) && heddle_hal_has(hal_, end_recording) &&
           heddle_hal_has(hal_, replay) && heddle_hal_has(hal_, destroy_recording);
  }
  // Shared by all copies of this object; null if the device has no streams.
  StreamManager* streams() const;
  EventManager* events() const;
  tl::unexpected<Error> last_error(const char* what) const;
  // Copies between host and device, in either direction; complete on return.
  Status copy_now(void* to, const void* from, int64_t bytes) const;

 private:
  struct Queues;
  explicit Device(const heddle_hal* hal);
  const heddle_hal* hal_;
  std::shared_ptr<Queues> queues_;
};

// A block of device memory. Zero bytes take no memory and have a null address.
class Block {
 public:
  Block() = default;
  static Result<Block> allocate(const Device& device, int64_t bytes);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  char* data() const { return static_cast<char*>(memory_); }
  int64_t bytes() const { return bytes_; }

 private:
  const heddle_hal* hal_ = nullptr;
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
};

// Code loaded on a device.
class Code {
 public:
  static Result<Code> load(const Device& device, std::span<const uint8_t> object);
  ~Code();
  Code(Code&& other) noexcept;
  Code& operator=(Code&& other) noexcept;
  Code() = default;
  Result<const void*> find(const char* symbol) const;

 private:
  const heddle_hal* hal_ = nullptr;
  heddle_hal_program* program_ = nullptr;
};

}  // namespace heddle::runtime
