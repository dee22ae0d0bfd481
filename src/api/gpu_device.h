// Private to api: the GPUs of this machine, each opened once and kept until the process ends.
#pragma once

#include <memory>

#include "base/error.h"
#include "runtime/cuda_device.h"
#include "target/target.h"

namespace heddle::api {

// Thread-safe. Error (machine): no driver, no such device.
Result<std::shared_ptr<runtime::CudaDevice>> open_gpu(int number);

// The newest shipped target that runs on the device. Error (machine): the device is older than all
// of them.
Result<target::Target> gpu_target(const runtime::CudaDeviceInfo& info);
// Whether code for `target` runs on the device. Error (machine): it does not.
Status check_gpu(const target::Target& target, const runtime::CudaDeviceInfo& info);

}  // namespace heddle::api
