// The `cpu` device: host memory, our own loader, kernels split over the workers of the session.
#pragma once

#include <memory>

#include "base/parallel.h"
#include "runtime/device.h"

namespace heddle::runtime {

// A caller's allocator. It must return 64-byte aligned memory, or null on failure, from any thread;
// `release` gets the pointer and the size that were allocated.
struct HostAllocator {
  void* (*allocate)(void* context, int64_t bytes) = nullptr;  // null: our own memory
  void (*release)(void* context, void* memory, int64_t bytes) = nullptr;
  void* context = nullptr;
};

class CpuDevice {
 public:
  // `workers` must outlive it. Several executors may share one device and run at the same time: if
  // the workers are busy, an executor runs its launches on its own thread.
  explicit CpuDevice(Workers& workers, const HostAllocator& allocator = {});
  ~CpuDevice();
  CpuDevice(const CpuDevice&) = delete;
  const Device& device() const { return device_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  Device device_;
};

}  // namespace heddle::runtime
