// A kernel and its twins (the same with other numbers of rows) as one kernel that takes its rows as
// run-time dimensions: then kernels that differ only in rows have the same code, and the code of
// one is found in the cache of objects for another (tuning samples).
#pragma once

#include <optional>
#include <vector>

#include "lower/share_extents.h"

namespace heddle::lower {

// `dims` of the result: those of the twins in their order, then the kernel's own. At least two
// twins, so that the code does not depend on the kernel's own rows. Nullopt: their forms differ.
std::optional<SharedExtents> share_with_twins(std::vector<kernel::Kernel> twins,
                                              const kernel::Kernel& own, const OpenPass& pass);

}  // namespace heddle::lower
