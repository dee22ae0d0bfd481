// The reference interpreter (interpreted.cc).
#include "api/opened_device.h"

namespace heddle::api {
namespace {

class Interpreter : public OpenedDevice {
 public:
  explicit Interpreter(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  bool interprets() const override { return true; }
  Result<const runtime::Device*> start(const target::Target&) override {
    return machine_error("{} loads no program", name_);
  }

 private:
  std::string name_;
};

}  // namespace

Opened open_interpreter(const DeviceRequest& request) {
  if (request.text != "interp" && request.text != "interp:f64") return nullptr;
  return std::make_unique<Interpreter>(request.text);
}

}  // namespace heddle::api
