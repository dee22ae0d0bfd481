// A GPU of this machine.
#include <algorithm>
#include <cctype>
#include <optional>

#include "api/gpu_device.h"
#include "api/opened_device.h"
#include "program/streams.h"

namespace heddle::api {
namespace {

class Cuda : public OpenedDevice {
 public:
  explicit Cuda(int number) : number_(number) {}
  std::string name() const override { return fmt::format("cuda:{}", number_); }
  int64_t streams() const override { return program::StreamOptions().most_streams; }
  bool own_memory() const override { return true; }
  bool runs(target::DeviceKind kind) const override { return kind == target::DeviceKind::gpu; }
  bool starts_late() const override { return true; }

  // The named target, or that of the GPU.
  Result<target::Target> find_target(const std::string& wanted, bool /*code*/) const override {
    if (wanted != "host") {
      HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::find_target(wanted));
      if (target.kind != target::DeviceKind::gpu)
        return user_error(
            "target '{}' is a CPU's, but device cuda was asked for; use sm_80 or sm_90", wanted);
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

// "cuda" is the first GPU, "cuda:1" the second. No value: another text.
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
