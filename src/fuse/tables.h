// Private to fuse: kernels over many arrays (an optimizer's step over all tensors of a network)
// become one kernel.
#pragma once

#include "fuse/groups.h"
#include "fuse/refusal.h"

namespace heddle::fuse {

// Behind the cover: fusions bound by memory between the caller's arrays and the results become one
// table (hlo/composite.h), where they are more than a composite holds and several of them do the
// same to different arrays, or make many. Nothing but results leaves it, so no order is lost; and
// it reads the caller's arrays, constants and small values alone, so no array has to be kept longer
// than it was. Those of one shape are flattened, so that arrays of all ranks are the same code.
bool form_tables(hlo::Module* module);

}  // namespace heddle::fuse
