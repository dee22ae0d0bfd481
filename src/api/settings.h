// Private to api: the texts of CompileOptions as what they mean.
#pragma once

#include <string>

#include "api/opened_device.h"
#include "api/session.h"
#include "compiler/compiler.h"
#include "target/target.h"

namespace heddle::api {

struct Settings {
  DeviceRequest where;
  std::shared_ptr<OpenedDevice> device;  // of `where`, for its facts: a program opens its own
  target::Target target;
  std::string tuning_device;   // whose records `target` has; the same under all numerics
  compiler::Options compiler;  // with the cache's folder found, and made where it was named
  int threads = 1;
  bool explain = false;
};

// Errors (user): an unknown word, with those that are known; what is not built. The target is left
// out where nothing is compiled.
Result<Settings> read_settings(const CompileOptions& options);
// Whether what a pool takes is within the limit: of a static plan the planner has seen to it.
Status check_limit(const std::string& program, int64_t pool_peak_bytes,
                   const compiler::Options& options);
inline constexpr int kMostThreads = 1024;
// Error (user): not 0 … kMostThreads. 0 becomes the cores that this process may use.
Result<int> read_threads(int threads);

// "O2".
std::string level_name(const compiler::Options& options);

}  // namespace heddle::api
