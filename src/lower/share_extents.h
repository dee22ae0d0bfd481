// Kernels that are identical except for extents and strides (of layers that grow in width, of
// packed weights) become one kernel that takes its extents as run-time dimensions: code generation
// takes most of a compilation's time, and these kernels are memory-bound either way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "lower/passes.h"

namespace heddle::lower {

// A kernel after the pass open_extents. Two kernels with the same opened text can be shared.
struct OpenExtents {
  kernel::Kernel kernel;
  std::vector<int64_t> dims;  // the values of its dimensions in the original kernel
};
// Runs the pass, unless it is disabled. True: the kernel has changed.
using OpenPass = std::function<bool(kernel::Kernel*, const Context&)>;
OpenExtents opened(const kernel::Kernel& kernel, const OpenPass& pass);

struct SharedExtents {
  kernel::Kernel kernel;
  std::vector<std::vector<int64_t>> dims;  // for each of the kernels that share it
};

// One kernel for all kernels of the opened form `form`; `values`: the values of its dimensions, one
// list per kernel. Dimensions with one value in all kernels become numbers again; dimensions that
// are always equal, or multiples, become one. Nullopt: too many dimensions are left, or the result
// breaks an invariant of kernels.
std::optional<SharedExtents> share_extents(const kernel::Kernel& form,
                                           const std::vector<std::vector<int64_t>>& values);

}  // namespace heddle::lower
