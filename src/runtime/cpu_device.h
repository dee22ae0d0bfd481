// The `cpu` device: host memory, our own loader, kernels split over the workers of the session.
#pragma once

#include <memory>

#include "base/parallel.h"
#include "runtime/device.h"

namespace heddle::runtime {

class CpuDevice {
 public:
  // `workers` must outlive it. Several executors may share one device and run at the same time: the
  // one that finds the workers taken does its launches alone.
  explicit CpuDevice(Workers& workers);
  ~CpuDevice();
  CpuDevice(const CpuDevice&) = delete;
  const Device& device() const { return device_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  Device device_;
};

}  // namespace heddle::runtime
