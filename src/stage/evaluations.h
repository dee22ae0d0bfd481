// The number of points of a stage that are computed in all iterations of the loops around it.
#pragma once

#include <cstdint>
#include <vector>

#include "index/map.h"

namespace heddle::stage {

// The points of `region` summed over all values of `loops` (numbers of loop variables; `trips` by
// variable). A region that runs beyond `box` stops there, as the last strip of a kernel does.
double evaluations(const index::Region& region, const std::vector<int64_t>& box,
                   const std::vector<int>& loops, const std::vector<int64_t>& trips);

}  // namespace heddle::stage
