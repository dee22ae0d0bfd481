// Kernels with threads (kernel/blocks.h) as CUDA C++: one __global__ function per phase, without
// includes, so that NVRTC needs no headers and the text can be read as it is.
//
//     extern "C" __global__ void <kernel>_p<phase>(T0* buffer0, T1* buffer1, …, long long dim0, …)
//
// takes the global buffers in order of declaration, then the run-time dimensions. It is launched on
// a grid of one dimension: the blocks of the phase's groups, one group after the other.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/kernel.h"
#include "target/target.h"

namespace heddle::emit::cuda {

struct Launch {
  std::string function;
  int64_t blocks = 0;  // 0 where the kernel has run-time dimensions: see kernel::task_count
  int threads = 0;
  int64_t scratch_bytes = 0;
  // Dynamic scratch of the launch: 0 if the text declares the scratch itself.
  int64_t dynamic_scratch_bytes() const { return scratch_bytes > (48 << 10) ? scratch_bytes : 0; }
};

struct CudaText {
  std::string text;               // complete
  std::vector<Launch> launches;   // by phase
  std::string kernel;             // the text without its device functions
  std::set<std::string> helpers;  // the device functions that it calls
};

// `apart`: no two arrays of a launch share memory, none is updated in place.
// Error: names what the CUDA back end does not support. Precondition: verified.
Result<CudaText> to_cuda(const kernel::Kernel& kernel, const target::Target& target,
                         bool apart = false);

// Several kernels as one text, each device function once.
std::string join_kernels(const std::vector<const CudaText*>& kernels);

// The architecture of a GPU target for NVRTC: "sm_90".
std::string architecture(const target::Target& target);

}  // namespace heddle::emit::cuda
