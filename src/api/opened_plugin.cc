// Devices of other source trees: shared libraries.
#include "api/opened_device.h"
#include "runtime/plugin_device.h"

namespace heddle::api {
namespace {

class Plugin : public OpenedDevice {
 public:
  explicit Plugin(runtime::Device device) : device_(device) {}
  std::string name() const override { return device_.hal().name; }
  Result<const runtime::Device*> start(const target::Target&) override { return &device_; }

 private:
  runtime::Device device_;
};

}  // namespace

Opened open_plugin_device(const DeviceRequest& request) {
  const std::string path(behind("plugin:", request.text));
  if (path.empty()) return nullptr;
  HEDDLE_ASSIGN_OR_RETURN(const runtime::Device device, runtime::open_plugin(path));
  return std::make_unique<Plugin>(device);
}

}  // namespace heddle::api
