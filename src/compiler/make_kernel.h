// A placed fusion becomes a finished kernel: stitched, then lowered for its device.
#pragma once

#include <string>
#include <vector>

#include "pass/run.h"
#include "schedule/place.h"
#include "stitch/stitch.h"
#include "target/target.h"

namespace heddle::compiler {

// Rolls the k loops of products instead of unrolling them (ku): a fraction of the code, with the
// same sums in the same order, for kernels that are compiled to run a few times.
void roll_products(stage::PlacedFusion* placed);

// `streamed` as stitch::stitch() takes it. `options`: of the run of kernel passes (verified,
// dumped, disabled, bisected); `changes`, if given: the passes that changed something are added to
// it. Error (machine): a pass broke the kernel.
Result<stitch::Stitched> make_kernel(const stage::PlacedFusion& placed, const std::string& name,
                                     const target::Target& target,
                                     const std::vector<bool>& streamed = {},
                                     const pass::RunOptions& options = {},
                                     std::vector<std::string>* changes = nullptr);

}  // namespace heddle::compiler
