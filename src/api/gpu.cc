#include "api/gpu.h"

#include "api/settings.h"
#include "hlo/module.h"

namespace heddle::api {

Result<compiler::GpuKernels> gpu_kernels(const Model& model, const CompileOptions& options) {
  if (model.module() == nullptr)
    return user_error("{} is already compiled, or was consumed: GPU text needs the model itself",
                      model.name());
  HEDDLE_ASSIGN_OR_RETURN(const target::Target target, target::find_target(options.target));
  // The other options are read as usual; that needs a CPU target.
  CompileOptions others = options;
  others.device.clear();
  others.target = "portable";
  others.cache = "off";
  HEDDLE_ASSIGN_OR_RETURN(const Settings settings, read_settings(others));
  return compiler::gpu_kernels(model.module()->clone(), target, settings.compiler);
}

}  // namespace heddle::api
