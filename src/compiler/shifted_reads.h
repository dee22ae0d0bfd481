// Kernels that are alike but for where they begin to read, as the steps of an unrolled recurrence
// are, become one kernel that is told where.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::compiler {

struct ShiftedReads {
  kernel::Kernel kernel;
  std::vector<int64_t> dims;  // values of its run-time dimensions in place of the one it came from
};

// The kernel with the constant part of its indices into each input (the least of all places that
// read the input; only where that is not 0) as a run-time dimension. Without dims: nothing to
// shift.
ShiftedReads shift_reads(const kernel::Kernel& kernel);

}  // namespace heddle::compiler
