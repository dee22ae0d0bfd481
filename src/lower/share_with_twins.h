// A kernel and its twins, which are the same with other numbers of rows, as one kernel that is told
// its rows: then all that differ in rows only have the same code, and a program of one of them is
// found in the cache of objects for another (tuning samples).
#pragma once

#include <optional>
#include <vector>

#include "lower/share_extents.h"

namespace heddle::lower {

// `dims` of the result: those of the twins in their order, then the kernel's own. At least two
// twins, so that the code is the same whatever the kernel's own rows are. None: their forms differ.
std::optional<SharedExtents> share_with_twins(std::vector<kernel::Kernel> twins,
                                              const kernel::Kernel& own, const OpenPass& pass);

}  // namespace heddle::lower
