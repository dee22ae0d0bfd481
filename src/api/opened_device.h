// Private to api: the devices that programs are compiled for, loaded on and run on. Each device has
// a file opened_<name>.cc and a row in opened_device.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/parallel.h"
#include "runtime/cpu_device.h"
#include "runtime/cuda_device.h"
#include "runtime/virtual_device.h"
#include "target/target.h"

namespace heddle::api {

struct DeviceRequest {
  std::string text;                  // "cpu", "cuda:1", …; empty: cpu
  int threads = 1;                   // for the cpu
  runtime::HostAllocator allocator;  // for the cpu
};

// One object per program; state shared by programs is internal. start() may be called by one thread
// at a time, the other functions by any.
class OpenedDevice {
 public:
  virtual ~OpenedDevice() = default;
  virtual std::string name() const = 0;  // "cpu", "cuda:0"
  virtual int threads() const { return 1; }
  virtual int64_t streams() const { return 1; }  // most streams that a program uses
  virtual bool own_memory() const { return false; }
  // It is this processor: times can be measured, and tuning records apply to it.
  virtual bool is_host() const { return false; }
  // Modules are interpreted, not compiled to programs.
  virtual bool interprets() const { return false; }
  // Whether it runs programs for such targets.
  virtual bool runs(target::DeviceKind kind) const { return kind == target::DeviceKind::cpu; }
  // Whether programs may share prepared weights.
  virtual bool shares_weights() const { return false; }
  // Whether programs are loaded at their first run, so that they can be compiled without the
  // device.
  virtual bool starts_late() const { return false; }

  // The target to compile for: by a target's name, its file, or "host" for the device's own.
  // `code`: machine code is needed. Error (user): there is no such target, or its code does not run
  // here.
  virtual Result<target::Target> find_target(const std::string& wanted, bool code) const;
  // The device on which programs for `target` are loaded; lives as long as this object. Error
  // (machine): the device is missing, or does not run them.
  virtual Result<const runtime::Device*> start(const target::Target& target) = 0;
  // Available after start(); null on other devices.
  virtual const runtime::CudaDevice* gpu() const { return nullptr; }
};

// The shared workers of device cpu with so many threads.
std::shared_ptr<Workers> cpu_workers(int threads);

// Error (user): there is no such device; lists those that exist.
Result<std::unique_ptr<OpenedDevice>> open_device(const DeviceRequest& request);

// The text after a prefix such as "virtual:"; empty: another prefix.
std::string_view behind(std::string_view prefix, std::string_view text);
// Options from the text of a device "virtual:NAME". Error (user): not such a text, or an unknown
// key.
Result<runtime::VirtualOptions> read_virtual(const std::string& device);

using Opened = Result<std::unique_ptr<OpenedDevice>>;
// One function per file. Null: the text names another device.
Opened open_cpu(const DeviceRequest& request);
Opened open_cuda(const DeviceRequest& request);
Opened open_virtual(const DeviceRequest& request);
Opened open_plugin_device(const DeviceRequest& request);
Opened open_interpreter(const DeviceRequest& request);

}  // namespace heddle::api
