// Private to api: the texts of CompileOptions as what they mean.
#pragma once

#include <string>

#include "api/session.h"
#include "compiler/compiler.h"
#include "runtime/virtual_device.h"
#include "target/target.h"

namespace heddle::api {

enum class Device { cpu, interp, interp_f64, cuda, virtual_device, plugin };

struct Settings {
  Device device = Device::cpu;
  int cuda_number = 0;                // of several
  runtime::VirtualOptions simulated;  // of a virtual device
  std::string plugin;                 // path of its library
  target::Target target;
  compiler::Options compiler;  // with the cache's folder found, and made where it was named
  int threads = 1;
  bool explain = false;
  runtime::HostAllocator allocator;
};

// Errors (user): an unknown word, with those that are known; what is not built. The target is left
// out where nothing is compiled.
Result<Settings> read_settings(const CompileOptions& options);
// Whether what a pool takes is within the limit: of a static plan the planner has seen to it.
Status check_limit(const std::string& program, int64_t pool_peak_bytes,
                   const compiler::Options& options);
Result<Device> read_device(const std::string& text, int* cuda_number = nullptr);
// The path in "plugin:PATH"; empty: it is no such device.
std::string plugin_path(const std::string& device);
// Of a device's text that read_device() called virtual.
Result<runtime::VirtualOptions> read_virtual(const std::string& device);
inline constexpr int kMostThreads = 1024;
// Error (user): not 0 … kMostThreads. 0 becomes the cores that this process may use.
Result<int> read_threads(int threads);

// "O2".
std::string level_name(const compiler::Options& options);

}  // namespace heddle::api
