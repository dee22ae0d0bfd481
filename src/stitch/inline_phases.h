// Private to stitch: a kernel inside another one, its phases and groups as they are.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace heddle::stitch {

// `globals`: the buffers of `to` that stand for the global buffers of `from`, all flat. Its scratch
// lies at the same offsets.
std::vector<kernel::Phase> inline_phases(const kernel::Kernel& from,
                                         const std::vector<kernel::BufferId>& globals,
                                         kernel::Kernel* to);

}  // namespace heddle::stitch
