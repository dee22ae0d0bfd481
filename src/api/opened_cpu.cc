// The host processor.
#include <map>
#include <mutex>

#include "api/opened_device.h"
#include "base/parallel.h"

namespace heddle::api {
namespace {

// The workers and their device, shared by programs with the same number of threads.
struct CpuRuntime {
  explicit CpuRuntime(int threads) : workers(threads), device(workers) {}
  Workers workers;
  runtime::CpuDevice device;
};

std::shared_ptr<CpuRuntime> cpu_runtime(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<CpuRuntime>> all;
  const std::lock_guard lock(mutex);
  std::shared_ptr<CpuRuntime> shared = all[threads].lock();
  if (!shared) {
    shared = std::make_shared<CpuRuntime>(threads);
    all[threads] = shared;
  }
  return shared;
}

class Cpu : public OpenedDevice {
 public:
  explicit Cpu(const DeviceRequest& request)
      : threads_(request.threads), allocator_(request.allocator) {}
  std::string name() const override { return "cpu"; }
  int threads() const override { return threads_; }
  bool is_host() const override { return true; }
  // With a caller's allocator each program has its own memory.
  bool shares_weights() const override { return allocator_.allocate == nullptr; }

  Result<const runtime::Device*> start(const target::Target&) override {
    if (!runtime_) {
      runtime_ = cpu_runtime(threads_);
      if (allocator_.allocate != nullptr)
        own_ = std::make_unique<runtime::CpuDevice>(runtime_->workers, allocator_);
    }
    return own_ ? &own_->device() : &runtime_->device.device();
  }

 private:
  int threads_;
  runtime::HostAllocator allocator_;
  std::shared_ptr<CpuRuntime> runtime_;
  std::unique_ptr<runtime::CpuDevice> own_;  // with the caller's allocator
};

}  // namespace

std::shared_ptr<Workers> cpu_workers(int threads) {
  const std::shared_ptr<CpuRuntime> runtime = cpu_runtime(threads);
  return {runtime, &runtime->workers};
}

Opened open_cpu(const DeviceRequest& request) {
  if (!request.text.empty() && request.text != "cpu") return nullptr;
  return std::make_unique<Cpu>(request);
}

}  // namespace heddle::api
