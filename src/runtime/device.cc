#include "runtime/device.h"

#include <utility>

#include "runtime/stream_manager.h"

namespace heddle::runtime {

struct Device::Queues {
  explicit Queues(const heddle_hal* hal) : events(hal), streams(hal, events) {}
  EventManager events;
  StreamManager streams;
};

Device::Device(const heddle_hal* hal) : hal_(hal) {
  if (heddle_hal_has(hal, create_stream) && heddle_hal_has(hal, destroy_stream) &&
      heddle_hal_has(hal, launch_on) && heddle_hal_has(hal, copy_on) &&
      heddle_hal_has(hal, create_event) && heddle_hal_has(hal, destroy_event) &&
      heddle_hal_has(hal, record) && heddle_hal_has(hal, wait_for) && heddle_hal_has(hal, is_done))
    queues_ = std::make_shared<Queues>(hal);
}

StreamManager* Device::streams() const { return queues_ ? &queues_->streams : nullptr; }
EventManager* Device::events() const { return queues_ ? &queues_->events : nullptr; }

Result<Device> Device::make(const heddle_hal* hal) {
  if (hal->struct_bytes < offsetof(heddle_hal, last_error) || hal->version != HEDDLE_HAL_VERSION)
    return error_of(ErrorKind::device, "device: HAL version {}, this heddle has {}",
                    hal->struct_bytes < offsetof(heddle_hal, name) ? 0 : hal->version,
                    HEDDLE_HAL_VERSION);
  const bool complete = heddle_hal_has(hal, last_error) && heddle_hal_has(hal, allocate) &&
                        heddle_hal_has(hal, release) && heddle_hal_has(hal, copy) &&
                        heddle_hal_has(hal, load) && heddle_hal_has(hal, unload) &&
                        heddle_hal_has(hal, find) && heddle_hal_has(hal, launch) &&
                        heddle_hal_has(hal, wait) && heddle_hal_has(hal, worker_count);
  if (!complete)
    return error_of(ErrorKind::device, "device {}: a required HAL function is missing", hal->name);
  return Device(hal);
}

tl::unexpected<Error> hal_error(const heddle_hal& hal, const char* what) {
  const char* message = hal.last_error(hal.device);
  return error_of(ErrorKind::device, "device {}: {}: {}", hal.name, what,
                  message == nullptr ? "no reason given" : message);
}

tl::unexpected<Error> Device::last_error(const char* what) const { return hal_error(*hal_, what); }

Status Device::copy_now(void* to, const void* from, int64_t bytes) const {
  if (bytes > 0 && hal_->copy(hal_->device, to, from, bytes) != 0) return last_error("cannot copy");
  if (hal_->wait(hal_->device) != 0) return last_error("cannot wait");
  return {};
}

Result<Block> Block::allocate(const Device& device, int64_t bytes) {
  Block block;
  if (bytes == 0) return block;
  const heddle_hal& hal = device.hal();
  if (hal.allocate(hal.device, bytes, &block.memory_) != 0)
    return device.last_error("cannot allocate");
  block.hal_ = &hal;
  block.bytes_ = bytes;
  return block;
}

Block::~Block() {
  if (memory_ != nullptr) hal_->release(hal_->device, memory_, bytes_);
}

Block::Block(Block&& other) noexcept
    : hal_(other.hal_),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(hal_, other.hal_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<Code> Code::load(const Device& device, std::span<const uint8_t> object) {
  Code code;
  const heddle_hal& hal = device.hal();
  if (hal.load(hal.device, object.data(), object.size(), &code.program_) != 0) {
    // A damaged object means a damaged program file, so it is a user error.
    return user_error("{}", hal.last_error(hal.device));
  }
  code.hal_ = &hal;
  return code;
}

Code::~Code() {
  if (program_ != nullptr) hal_->unload(hal_->device, program_);
}

Code::Code(Code&& other) noexcept
    : hal_(other.hal_), program_(std::exchange(other.program_, nullptr)) {}

Code& Code::operator=(Code&& other) noexcept {
  std::swap(hal_, other.hal_);
  std::swap(program_, other.program_);
  return *this;
}

Result<const void*> Code::find(const char* symbol) const {
  const void* function = nullptr;
  if (program_ == nullptr || hal_->find(hal_->device, program_, symbol, &function) != 0)
    return user_error("the program's code has no function '{}'; compile the model again", symbol);
  return function;
}

}  // namespace heddle::runtime
