// Compiles a model's kernels for a GPU target without a GPU: compiler/gpu_kernels.h with the
// options of a compilation.
#pragma once

#include "api/session.h"
#include "compiler/gpu_kernels.h"

namespace heddle::api {

// `options.target` must name a GPU target. Error: it does not, or the model was consumed.
Result<compiler::GpuKernels> gpu_kernels(const Model& model, const CompileOptions& options);

}  // namespace heddle::api
