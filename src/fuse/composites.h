// Private to fuse: kernels that cannot share their loops, and could share a launch.
#pragma once

#include <vector>

#include "fuse/groups.h"
#include "fuse/refusal.h"

namespace heddle::fuse {

constexpr size_t kMostParts = 16;  // of a composite

// Behind the cover: fusions without a product that read one another or the same arrays become
// parts of one fusion (hlo/composite.h), a kernel whose phases are theirs (packing of different
// spaces, grid composition). So do those that can stand anywhere, as they read arguments alone and
// nobody but the caller reads them. Refusals: `cycle`, `too-large`, `far` (too much stands between
// them), `memory` (what dies between them would be kept).
bool form_composites(hlo::Module* module, std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
