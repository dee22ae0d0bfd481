// Private to fuse: which arrays of a loop's state are made anew by its steps.
#pragma once

#include "hlo/module.h"

namespace heddle::fuse {

// Leaf `leaf` of the state of `loop` (covered, of known trips) gets a box in every step, and the
// boxes of all steps are all of it: what it was before the loop is not in the result. False too
// where its steps are too many to look at.
bool is_overwritten(const hlo::Instr* loop, int64_t leaf);

}  // namespace heddle::fuse
