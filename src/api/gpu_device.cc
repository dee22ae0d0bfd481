#include "api/gpu_device.h"

#include <map>
#include <mutex>

namespace heddle::api {

namespace {

// 80 for sm_80; 0: not the name of a GPU target.
int capability_of(const std::string& name) {
  return name.starts_with("sm_") ? std::atoi(name.c_str() + 3) : 0;
}

}  // namespace

Result<std::shared_ptr<runtime::CudaDevice>> open_gpu(int number) {
  static std::mutex mutex;
  // Never destroyed: at exit the driver may already have been shut down.
  static auto& all = *new std::map<int, std::shared_ptr<runtime::CudaDevice>>;
  const std::lock_guard lock(mutex);
  if (const auto known = all.find(number); known != all.end()) return known->second;
  HEDDLE_ASSIGN_OR_RETURN(auto driver, runtime::CudaDriver::open());
  HEDDLE_ASSIGN_OR_RETURN(auto opened, runtime::CudaDevice::open(std::move(driver), number));
  return all[number] = std::move(opened);
}

Result<target::Target> gpu_target(const runtime::CudaDeviceInfo& info) {
  const int capability = info.major * 10 + info.minor;
  int best = 0;
  for (const std::string& name : target::shipped_targets())
    if (capability_of(name) <= capability) best = std::max(best, capability_of(name));
  if (best == 0)
    return error_of(ErrorKind::device, "{}: sm_{} is older than sm_80", info.name, capability);
  // Every major version needs its own target: cubins do not run on the next one.
  HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::find_target(fmt::format("sm_{}", best)));
  HEDDLE_RETURN_IF_ERROR(check_gpu(target, info));
  target.multiprocessors = info.multiprocessors;
  target.memory_bytes = static_cast<int64_t>(info.memory_bytes);
  return target;
}

Status check_gpu(const target::Target& target, const runtime::CudaDeviceInfo& info) {
  const int wanted = capability_of(target.name);
  if (wanted / 10 == info.major && wanted % 10 <= info.minor) return {};
  return error_of(ErrorKind::device,
                  "{}: it runs sm_{}{}, the code is for {}; compile with another --target",
                  info.name, info.major, info.minor, target.name);
}

}  // namespace heddle::api
