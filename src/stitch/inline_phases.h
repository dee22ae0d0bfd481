// Private to stitch: inlines a kernel into another one, with its phases and groups unchanged.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace heddle::stitch {

// `globals`: the buffers of `to` that replace the global buffers of `from`, all flat. The scratch
// of `from` keeps its offsets.
std::vector<kernel::Phase> inline_phases(const kernel::Kernel& from,
                                         const std::vector<kernel::BufferId>& globals,
                                         kernel::Kernel* to);

}  // namespace heddle::stitch
