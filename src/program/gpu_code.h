// The object of a GPU's kernels: a cubin, and in front of it, as text, how its functions are
// launched. It stands where a CPU's program has its relocatable object.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace heddle::program {

struct GpuFunction {
  std::string name;
  int64_t blocks = 1;
  int threads = 1;            // of a block
  int64_t scratch_bytes = 0;  // of a block, that the launch asks for; 0: the cubin says it itself
  int buffers = 0, dims = 0;  // arguments: addresses, then 64-bit extents
  bool operator==(const GpuFunction&) const = default;
};

struct GpuCode {
  std::string architecture;  // "sm_90"
  std::vector<GpuFunction> functions;
  std::vector<uint8_t> cubin;
};

std::vector<uint8_t> encode_gpu_code(const GpuCode& code);
// Error (user): it is none, or damaged.
Result<GpuCode> decode_gpu_code(std::span<const uint8_t> bytes);

}  // namespace heddle::program
