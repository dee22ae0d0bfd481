// Private to fuse: loops with small bodies become one kernel.
#pragma once

#include <vector>

#include "fuse/groups.h"
#include "fuse/refusal.h"

namespace heddle::fuse {

// Behind the cover: a while of known trips whose step is a few kernels of little work becomes a
// loop fusion (hlo/loop_trips.h), one launch for all steps. What the step computes anew from what
// does not change is computed in front of it. Refusals: `loop-count` (how often it runs is not
// known), `loop-body` (a step does what no kernel does), `loop-state` (its state has no place
// in the kernel), `loop-work` (a step pays for its launches, or for more than one core).
bool form_loops(hlo::Module* module, const target::Target& target, std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
