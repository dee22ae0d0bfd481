// Kernels that are alike but for their extents and strides, as those of layers that grow in width
// are, and those that pack weights, become one kernel that is told its extents: code generation
// takes most of a compilation's time, and these kernels wait for memory whether they know them or
// not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "lower/passes.h"

namespace heddle::lower {

// A kernel behind the pass open_extents. Two kernels with the same opened text are alike.
struct OpenExtents {
  kernel::Kernel kernel;
  std::vector<int64_t> dims;  // what its dimensions stand for in the kernel that it came from
};
// Runs the pass, or leaves it out where it is disabled. True: the kernel has changed.
using OpenPass = std::function<bool(kernel::Kernel*, const Context&)>;
OpenExtents opened(const kernel::Kernel& kernel, const OpenPass& pass);

struct SharedExtents {
  kernel::Kernel kernel;
  std::vector<std::vector<int64_t>> dims;  // for each of the kernels that were alike
};

// One kernel for all whose opened form is `form`, by the values of its dimensions (`values`, one
// list a kernel): those on which all agree are numbers again, those that always go together are
// one. None: more dimensions would be left than are worth having, or the result breaks an invariant
// of kernels.
std::optional<SharedExtents> share_extents(const kernel::Kernel& form,
                                           const std::vector<std::vector<int64_t>>& values);

}  // namespace heddle::lower
