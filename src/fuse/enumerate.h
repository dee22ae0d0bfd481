// Private to fuse: the best cover of a small graph, exactly.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fuse/patterns.h"

namespace heddle::fuse {

// The time of a kernel of these vertices; infinity if there is no code for it.
using KernelPrice = std::function<double(const Members&)>;

// The kernels of the fastest acyclic cover of all vertices that can fuse. None: more than 64
// vertices, or more than `most_kernels` sets of vertices to price (checked before the first is
// priced).
std::optional<std::vector<Members>> best_cover(const Graph& graph, size_t most_kernels,
                                               const KernelPrice& price);

}  // namespace heddle::fuse
