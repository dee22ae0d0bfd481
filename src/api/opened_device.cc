#include "api/opened_device.h"

namespace heddle::api {
namespace {

struct Row {
  const char* words;  // for messages
  Opened (*open)(const DeviceRequest& request);
};

constexpr Row kDevices[] = {{"cpu", open_cpu},
                            {"cuda, cuda:N", open_cuda},
                            {"virtual:NAME", open_virtual},
                            {"plugin:FILE", open_plugin_device},
                            {"interp", open_interpreter}};

}  // namespace

Result<std::unique_ptr<OpenedDevice>> open_device(const DeviceRequest& request) {
  std::string words;
  for (const Row& row : kDevices) {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<OpenedDevice> device, row.open(request));
    if (device) return device;
    const bool last = &row == std::end(kDevices) - 1;
    words += (words.empty() ? "" : last ? " and " : ", ") + std::string(row.words);
  }
  return user_error("device '{}': unknown; available: {}", request.text, words);
}

std::string_view behind(std::string_view prefix, std::string_view text) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
}

Result<target::Target> OpenedDevice::find_target(const std::string& wanted, bool code) const {
  HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::find_target(wanted));
  if (code && target.kind == target::DeviceKind::gpu)
    return user_error("target '{}' is a GPU's; ask for device cuda, which runs it", wanted);
  return target;
}

}  // namespace heddle::api
