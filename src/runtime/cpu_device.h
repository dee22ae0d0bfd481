// The `cpu` device: host memory, our own loader, kernels split over the workers of the session.
#pragma once

#include <memory>

#include "base/parallel.h"
#include "runtime/device.h"

namespace heddle::runtime {

// Memory of someone else's: 64-byte aligned, from any thread. `allocate` gives null where there is
// none; `release` gets what it was asked for.
struct HostAllocator {
  void* (*allocate)(void* context, int64_t bytes) = nullptr;  // null: our own memory
  void (*release)(void* context, void* memory, int64_t bytes) = nullptr;
  void* context = nullptr;
};

class CpuDevice {
 public:
  // `workers` must outlive it. Several executors may share one device and run at the same time: the
  // one that finds the workers taken does its launches alone.
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
