// Private to fuse: the best cover of a small graph, exactly.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fuse/patterns.h"

namespace heddle::fuse {

// What a kernel of these vertices takes; infinity if no code can be made of it.
using KernelPrice = std::function<double(const Members&)>;

// The kernels of a cover of all vertices that can fuse, without a cycle, that takes the least time
// of all such covers. None: more than 64 vertices, or more than `most_kernels` sets of vertices to
// be priced (that is known before the first is).
std::optional<std::vector<Members>> best_cover(const Graph& graph, size_t most_kernels,
                                               const KernelPrice& price);

}  // namespace heddle::fuse
