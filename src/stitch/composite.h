// stitch: kernels that are parts of one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stitch/stitch.h"

namespace heddle::stitch {

// The kernel of a composite fusion (hlo/composite.h), of those of its parts. A part begins behind
// those that it waits for; parts that do not wait for each other share phases. `streamed` as of
// stitch().
using PartKernel =
    std::function<Stitched(const hlo::Instr* part, const std::vector<bool>& streamed)>;
Stitched stitch_composite(const hlo::Computation& computation, const std::string& name,
                          const target::Target& target, const PartKernel& kernel_of,
                          const std::vector<bool>& streamed = {});

}  // namespace heddle::stitch
