// Random kernels for tests: valid (verify) and free of faults (interpret) by construction, the same
// for one seed on every machine. Inputs come with them.
//
// Results are defined to the bit, NaN payloads aside: no min or max of zeros of unknown sign, no
// bits of a NaN. So two implementations must agree on all buffers, except those with a max_ulp,
// which hold results of functions (exp, tanh, …) and are never read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

struct RandomKernelOptions {
  std::vector<int> lanes = {4, 8, 16};  // a group takes one of them; powers of two
  std::vector<Type> storage_types = {Type::f16, Type::bf16};
  bool f64 = true;
  bool narrow_integers = true;  // s8, s16, u8, u16
  bool float_rem = true;
  bool functions = true;    // the ops with a bound in ulp, f32 only
  double function_ulp = 4;  // what RandomKernel::max_ulp says for them
  bool run_time_dims = true;
  int sections = 6;  // loop nests a group, about
};

// 64-byte aligned, of whole cache lines.
struct HostBuffer {
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> lines;
  int64_t bytes = 0;
  void* data() { return lines.data(); }
  const void* data() const { return lines.data(); }
};

struct RandomKernel {
  Kernel kernel;
  std::vector<int64_t> dims;
  std::vector<HostBuffer> memory;  // by global buffer: what it holds before the run
  std::vector<double> max_ulp;     // by global buffer; 0: equal bits (NaN equals NaN)
};

RandomKernel random_kernel(uint64_t seed, const RandomKernelOptions& options = {});

// Pointers to pass to interpret() and to compiled code.
std::vector<void*> pointers(std::vector<HostBuffer>& memory);

// The first element that differs too much: "buffer y2[17]: got 1.5, want 1.25"; empty if none.
std::string difference(const RandomKernel& kernel, const std::vector<HostBuffer>& got,
                       const std::vector<HostBuffer>& want);

}  // namespace heddle::kernel
