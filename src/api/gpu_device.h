// Private to api: the GPUs of this machine, each opened once and kept until the process ends.
#pragma once

#include <memory>

#include "base/error.h"
#include "runtime/cuda_device.h"
#include "target/target.h"

namespace heddle::api {

// Thread-safe. Error (machine): no driver, no such device.
Result<std::shared_ptr<runtime::CudaDevice>> open_gpu(int number);

// The newest shipped target that the device runs. Error (machine): it is older than all of them.
Result<target::Target> gpu_target(const runtime::CudaDeviceInfo& info);
// Does code for `target` run there? Error (machine): no.
Status check_gpu(const target::Target& target, const runtime::CudaDeviceInfo& info);

}  // namespace heddle::api
