// Private to api: the two kinds of Program.
#pragma once

#include <memory>

#include "api/session.h"
#include "api/settings.h"

namespace heddle::api {

// A program loaded on a device. Consumes the module.
Result<std::shared_ptr<Program>> compile_for_device(std::unique_ptr<hlo::Module> module,
                                                    const Model& model, const Settings& settings);
// `saved` comes from a file.
Result<std::shared_ptr<Program>> load_for_device(program::Program saved, const Model& model,
                                                 const DeviceRequest& where,
                                                 const std::string& dump_directory);
Result<std::shared_ptr<Program>> interpret(std::unique_ptr<hlo::Module> module, const Model& model,
                                           bool wide);

}  // namespace heddle::api
