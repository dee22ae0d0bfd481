// Private to api: parses the texts of CompileOptions.
#pragma once

#include <string>

#include "api/opened_device.h"
#include "api/session.h"
#include "compiler/compiler.h"
#include "target/target.h"

namespace heddle::api {

struct Settings {
  DeviceRequest where;
  std::shared_ptr<OpenedDevice> device;  // for `where`, to query it: each program opens its own
  target::Target target;
  std::string tuning_device;   // the device of the records in `target`; the same for all numerics
  compiler::Options compiler;  // with the cache folder resolved, and created if it was named
  int threads = 1;
  bool explain = false;
};

// Errors (user): an unknown word, with the known ones; a feature that is not built. The target is
// omitted if nothing is compiled.
Result<Settings> read_settings(const CompileOptions& options);
// Checks a pool's peak against the limit; for a static plan the planner has done that.
Status check_limit(const std::string& program, int64_t pool_peak_bytes,
                   const compiler::Options& options);
inline constexpr int kMostThreads = 1024;
// Error (user): not 0 … kMostThreads. 0 becomes the cores that this process may use.
Result<int> read_threads(int threads);

// "O2".
std::string level_name(const compiler::Options& options);

}  // namespace heddle::api
