// Simulates a target that may be absent, on the host, with its own memory and streams.
#include <algorithm>

#include "api/opened_device.h"
#include "program/streams.h"

namespace heddle::api {
namespace {

constexpr std::string_view kPrefix = "virtual:";

class Virtual : public OpenedDevice {
 public:
  explicit Virtual(runtime::VirtualOptions options)
      : options_(std::move(options)), device_(options_) {}
  std::string name() const override { return device_.device().hal().name; }
  int64_t streams() const override {
    return std::clamp<int64_t>(options_.streams, 1, program::StreamOptions().most_streams);
  }
  bool own_memory() const override { return true; }

  // The target in the device's name, unless another one is given. Machine code, if any, runs on the
  // host.
  Result<target::Target> find_target(const std::string& wanted, bool code) const override {
    HEDDLE_ASSIGN_OR_RETURN(target::Target target,
                            target::find_target(wanted == "host" ? options_.name : wanted));
    if (code && target.kind != target::DeviceKind::cpu)
      return user_error(
          "device virtual:{}: its code is for a GPU and cannot run here; heddle dryrun and explain "
          "do not run it",
          options_.name);
    return target;
  }
  Result<const runtime::Device*> start(const target::Target&) override { return &device_.device(); }

 private:
  runtime::VirtualOptions options_;
  runtime::VirtualDevice device_;
};

}  // namespace

Result<runtime::VirtualOptions> read_virtual(const std::string& device) {
  HEDDLE_ASSIGN_OR_RETURN(runtime::VirtualOptions options,
                          runtime::parse_virtual(behind(kPrefix, device)));
  if (device.find("capacity=") != std::string::npos) return options;
  // An unknown target name is reported when the target is requested.
  const Result<target::Target> target = target::find_target(options.name);
  if (target && target->memory_bytes > 0) options.capacity_bytes = target->memory_bytes;
  return options;
}

Opened open_virtual(const DeviceRequest& request) {
  if (!request.text.starts_with(kPrefix)) return nullptr;
  HEDDLE_ASSIGN_OR_RETURN(runtime::VirtualOptions options, read_virtual(request.text));
  return std::make_unique<Virtual>(std::move(options));
}

}  // namespace heddle::api
