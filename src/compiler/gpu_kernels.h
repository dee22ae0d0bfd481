// The kernels of a module for a GPU target: fused, placed, stitched and written as CUDA C++. Needs
// no GPU, and nothing of CUDA.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/compile_options.h"
#include "emit/cuda/cuda_text.h"
#include "hlo/module.h"
#include "stitch/stitch.h"

namespace heddle::compiler {

struct GpuKernel {
  std::string fusion;                   // the instruction that it computes
  std::unique_ptr<hlo::Module> module;  // the fusion alone, as an entry
  stitch::Stitched stitched;            // named k0, k1, …
  emit::cuda::CudaText cuda;
  int estimated_registers = 0;  // of a thread, by the cost model; 0: it has no estimate
};

struct GpuKernels {
  std::vector<GpuKernel> kernels;
  struct Refusal {
    std::string fusion, code, reason;
  };
  std::vector<Refusal> refused;  // without a kernel
};

// The module is consumed. Errors: as compile(); the target is not a GPU.
Result<GpuKernels> gpu_kernels(std::unique_ptr<hlo::Module> module, const target::Target& target,
                               const Options& options);

}  // namespace heddle::compiler
