// The GPU code generator as the compiler sees it: kernels with threads in, the object of a program
// out (program/gpu_code.h). Needs no GPU; NVRTC is opened only if the object is not cached.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "emit/cuda/cuda_text.h"
#include "kernel/kernel.h"
#include "program/gpu_code.h"
#include "stitch/stitch.h"
#include "target/target.h"

namespace heddle::compiler {

// Compiles CUDA C++ text for an architecture ("sm_90") to what the device loads.
using GpuAssembler = std::function<Result<std::vector<uint8_t>>(const std::string& text,
                                                                const std::string& architecture)>;

class GpuCodeGenerator {
 public:
  // `target` must outlive it. `assembler` empty: NVRTC.
  GpuCodeGenerator(const target::Target& target, GpuAssembler assembler);

  // Kernel names must be unique. Error (user): the back end does not support the kernel; it is not
  // added.
  Status add(const stitch::Stitched& stitched);
  // The text of the kernel that was added last.
  const std::string& last_text() const { return texts_.back().text; }
  // The object of all kernels. `cache_directory` empty: no cache. Error: machine.
  Result<std::vector<uint8_t>> object(const std::string& cache_directory) const;

 private:
  const target::Target& target_;
  GpuAssembler assembler_;
  std::vector<emit::cuda::CudaText> texts_;
  std::vector<program::GpuFunction> functions_;
};

}  // namespace heddle::compiler
