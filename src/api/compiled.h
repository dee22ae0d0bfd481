// Private to api: the two kinds of Program.
#pragma once

#include <memory>

#include "api/session.h"
#include "api/settings.h"

namespace heddle::api {

// A program on the cpu, or on a GPU, which is opened for the first context. The module is consumed.
Result<std::shared_ptr<Program>> compile_for_device(std::unique_ptr<hlo::Module> module,
                                                    const Model& model, const Settings& settings);
// `saved` is a program of a file. `cuda_number`: where one for a GPU runs.
Result<std::shared_ptr<Program>> load_for_device(program::Program saved, const Model& model,
                                                 int threads, int cuda_number,
                                                 const std::string& dump_directory);
Result<std::shared_ptr<Program>> interpret(std::unique_ptr<hlo::Module> module, const Model& model,
                                           bool wide);

}  // namespace heddle::api
