// Private to api: the texts of CompileOptions as what they mean.
#pragma once

#include <string>

#include "api/session.h"
#include "compiler/compiler.h"
#include "target/target.h"

namespace heddle::api {

enum class Device { cpu, interp, interp_f64, cuda };

struct Settings {
  Device device = Device::cpu;
  int cuda_number = 0;  // of several
  target::Target target;
  compiler::Options compiler;  // with the cache's folder found, and made where it was named
  int threads = 1;
};

// Errors (user): an unknown word, with those that are known; what is not built. The target is left
// out where nothing is compiled.
Result<Settings> read_settings(const CompileOptions& options);
Result<Device> read_device(const std::string& text, int* cuda_number = nullptr);
// Error (user): not 0 … 1024. 0 becomes the cores that this process may use.
Result<int> read_threads(int threads);

const char* level_name(compiler::Level level);

}  // namespace heddle::api
