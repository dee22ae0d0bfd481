// The GPUs of this machine, each opened once and kept while a program needs it.
#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <optional>

#include "api/opened_device.h"
#include "program/streams.h"

namespace heddle::api {
namespace {

// Thread-safe. Error (machine): no driver, no such device.
Result<std::shared_ptr<runtime::CudaDevice>> open_gpu(int number) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<runtime::CudaDevice>> all;
  const std::lock_guard lock(mutex);
  if (auto shared = all[number].lock()) return shared;
  HEDDLE_ASSIGN_OR_RETURN(auto driver, runtime::CudaDriver::open());
  HEDDLE_ASSIGN_OR_RETURN(auto opened, runtime::CudaDevice::open(std::move(driver), number));
  std::shared_ptr<runtime::CudaDevice> shared = std::move(opened);
  all[number] = shared;
  return shared;
}

// 80 of sm_80; 0: no name of a GPU.
int capability_of(const std::string& name) {
  return name.starts_with("sm_") ? std::atoi(name.c_str() + 3) : 0;
}

// Does code for `target` run there? Error (machine): no.
Status check_gpu(const target::Target& target, const runtime::CudaDeviceInfo& info) {
  const int wanted = capability_of(target.name);
  if (wanted / 10 == info.major && wanted % 10 <= info.minor) return {};
  return machine_error("{}: it runs sm_{}{}, the code is for {}; compile with another --target",
                       info.name, info.major, info.minor, target.name);
}

// The newest shipped target that the device runs. Error (machine): it is older than all of them.
Result<target::Target> gpu_target(const runtime::CudaDeviceInfo& info) {
  const int capability = info.major * 10 + info.minor;
  int best = 0;
  for (const std::string& name : target::shipped_targets())
    if (capability_of(name) <= capability) best = std::max(best, capability_of(name));
  if (best == 0) return machine_error("{}: sm_{} is older than sm_80", info.name, capability);
  // An own major version needs a target of its own: cubins do not go from one to the next.
  HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::find_target(fmt::format("sm_{}", best)));
  HEDDLE_RETURN_IF_ERROR(check_gpu(target, info));
  target.multiprocessors = info.multiprocessors;
  target.memory_bytes = static_cast<int64_t>(info.memory_bytes);
  return target;
}

class Cuda : public OpenedDevice {
 public:
  explicit Cuda(int number) : number_(number) {}
  std::string name() const override { return fmt::format("cuda:{}", number_); }
  int64_t streams() const override { return program::StreamOptions().most_streams; }
  bool own_memory() const override { return true; }
  bool runs(target::DeviceKind kind) const override { return kind == target::DeviceKind::gpu; }
  bool starts_late() const override { return true; }

  // The one that was named, or that of the GPU.
  Result<target::Target> find_target(const std::string& wanted, bool /*code*/) const override {
    if (wanted != "host") {
      HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::find_target(wanted));
      if (target.kind != target::DeviceKind::gpu)
        return user_error(
            "target '{}': a CPU's, and device cuda was asked for; take sm_80 or sm_90", wanted);
      return target;
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto gpu, open_gpu(number_));
    return gpu_target(gpu->info());
  }
  Result<const runtime::Device*> start(const target::Target& target) override {
    HEDDLE_ASSIGN_OR_RETURN(gpu_, open_gpu(number_));
    HEDDLE_RETURN_IF_ERROR(check_gpu(target, gpu_->info()));
    return &gpu_->device();
  }
  const runtime::CudaDevice* gpu() const override { return gpu_.get(); }

 private:
  int number_;
  std::shared_ptr<runtime::CudaDevice> gpu_;
};

// "cuda" is the first one, "cuda:1" the second. Nothing: the text says neither.
std::optional<int> read_cuda(const std::string& text) {
  if (text == "cuda") return 0;
  const std::string digits(behind("cuda:", text));
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (digits.empty() || digits.size() > 3 || !std::all_of(digits.begin(), digits.end(), is_digit))
    return std::nullopt;
  return std::stoi(digits);
}

}  // namespace

Opened open_cuda(const DeviceRequest& request) {
  const std::optional<int> number = read_cuda(request.text);
  if (!number) return nullptr;
  return std::make_unique<Cuda>(*number);
}

}  // namespace heddle::api
