// The `cuda` device as a HAL: memory, code (program/gpu_code.h), launches, copies, streams, events
// and callbacks of one NVIDIA GPU. A launch runs a whole grid: its tasks are the blocks. The
// scratch of a launch is not used (a block has shared memory).
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda_driver.h"
#include "runtime/device.h"

namespace heddle::runtime {

class CudaDevice {
 public:
  // Error (machine): there is no such device.
  static Result<std::unique_ptr<CudaDevice>> open(std::shared_ptr<const CudaDriver> driver,
                                                  int number = 0);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;

  const Device& device() const { return *device_; }
  const CudaDeviceInfo& info() const;
  // Times the work launched between the two calls by a pair of events. Error: from the driver.
  Status begin_timing();
  Result<double> end_timing_ms();

 private:
  CudaDevice() = default;
  struct State;
  std::unique_ptr<State> state_;
  std::unique_ptr<Device> device_;
};

}  // namespace heddle::runtime
