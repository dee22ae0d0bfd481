// The `cuda` device behind the HAL: memory, code (program/gpu_code.h), launches and copies of one
// NVIDIA GPU, streams, events and calls back. A launch runs whole grids: its tasks are the blocks,
// and the scratch of a launch is not used (a block has its own).
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda_driver.h"
#include "runtime/device.h"

namespace heddle::runtime {

class CudaDevice {
 public:
  // Error (of the machine): there is no such device.
  static Result<std::unique_ptr<CudaDevice>> open(std::shared_ptr<const CudaDriver> driver,
                                                  int number = 0);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;

  const Device& device() const { return *device_; }
  const CudaDeviceInfo& info() const;
  // Between two events around what is launched in between. Error: as the driver says.
  Status begin_timing();
  Result<double> end_timing_ms();

 private:
  CudaDevice() = default;
  struct State;
  std::unique_ptr<State> state_;
  std::unique_ptr<Device> device_;
};

}  // namespace heddle::runtime
