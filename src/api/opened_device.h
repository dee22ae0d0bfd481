// Private to api: the devices that programs are compiled for, loaded onto and run on. A device is a
// file opened_<name>.cc and a row of opened_device.cc.
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
  int threads = 1;                   // of the cpu
  runtime::HostAllocator allocator;  // of the cpu
};

// One for each program: what programs may have in common is shared behind it. start() may be called
// from several threads in turn, all else from any.
class OpenedDevice {
 public:
  virtual ~OpenedDevice() = default;
  virtual std::string name() const = 0;  // "cpu", "cuda:0"
  virtual int threads() const { return 1; }
  virtual int64_t streams() const { return 1; }  // of those that it has, the most a program uses
  virtual bool own_memory() const { return false; }
  // This processor: its times can be measured, and records of tuning are of it.
  virtual bool is_host() const { return false; }
  // Modules are interpreted: there is no program.
  virtual bool interprets() const { return false; }
  // Programs of such targets run on it.
  virtual bool runs(target::DeviceKind kind) const { return kind == target::DeviceKind::cpu; }
  // Programs may have prepared weights in common.
  virtual bool shares_weights() const { return false; }
  // A program is loaded when it first runs, so that it can be compiled where the device is not.
  virtual bool starts_late() const { return false; }

  // What to compile for: a target's name, its file, or "host" for the device's own. `code`: machine
  // code is wanted. Error (user): there is no such target, or its code does not run here.
  virtual Result<target::Target> find_target(const std::string& wanted, bool code) const;
  // Where a program for `target` is loaded; lives as long as this. Error (machine): the device is
  // not there, or does not run that.
  virtual Result<const runtime::Device*> start(const target::Target& target) = 0;
  // Once it was started; null on other devices.
  virtual const runtime::CudaDevice* gpu() const { return nullptr; }
};

// Those of device cpu with so many threads.
std::shared_ptr<Workers> cpu_workers(int threads);

// Error (user): there is no such device; the list of those that are.
Result<std::unique_ptr<OpenedDevice>> open_device(const DeviceRequest& request);

// The text behind "virtual:" and the like; empty: another device's.
std::string_view behind(std::string_view prefix, std::string_view text);
// Of the text of a device "virtual:NAME". Error (user): it is none, or has no such key.
Result<runtime::VirtualOptions> read_virtual(const std::string& device);

using Opened = Result<std::unique_ptr<OpenedDevice>>;
// By file. Null: the text is another device's.
Opened open_cpu(const DeviceRequest& request);
Opened open_cuda(const DeviceRequest& request);
Opened open_virtual(const DeviceRequest& request);
Opened open_plugin_device(const DeviceRequest& request);
Opened open_interpreter(const DeviceRequest& request);

}  // namespace heddle::api
