// Private to api: the two kinds of Program.
#pragma once

#include <memory>

#include "api/session.h"
#include "api/settings.h"

namespace heddle::api {

// A program on the cpu, or on a GPU, which is opened for the first context. The module is consumed.
Result<std::shared_ptr<Program>> compile_for_device(std::unique_ptr<hlo::Module> module,
                                                    const Model& model, const Settings& settings);
// `saved` is a program of a file.
struct Where {
  Device device = Device::cpu;
  int threads = 1;      // of the cpu
  int cuda_number = 0;  // of a GPU
  runtime::VirtualOptions simulated;
  std::string plugin;
  runtime::HostAllocator allocator;  // of the cpu
};
Result<std::shared_ptr<Program>> load_for_device(program::Program saved, const Model& model,
                                                 const Where& where,
                                                 const std::string& dump_directory);
Result<std::shared_ptr<Program>> interpret(std::unique_ptr<hlo::Module> module, const Model& model,
                                           bool wide);

}  // namespace heddle::api
