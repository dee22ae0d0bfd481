// The object of a program for a GPU: a text with launch parameters of its functions, then a cubin.
// It takes the place of the relocatable object in a program for a CPU.
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
  int threads = 1;            // per block
  int64_t scratch_bytes = 0;  // per block, dynamic; 0: static, declared in the cubin
  int buffers = 0, dims = 0;  // arguments: addresses, then 64-bit extents
  bool operator==(const GpuFunction&) const = default;
};

struct GpuCode {
  std::string architecture;  // "sm_90"
  std::vector<GpuFunction> functions;
  std::vector<uint8_t> cubin;
};

std::vector<uint8_t> encode_gpu_code(const GpuCode& code);
// Error (user): not GPU code, or damaged.
Result<GpuCode> decode_gpu_code(std::span<const uint8_t> bytes);

}  // namespace heddle::program
