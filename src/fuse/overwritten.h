// Private to fuse: arrays of a loop's state that its steps overwrite completely.
#pragma once

#include "hlo/module.h"

namespace heddle::fuse {

// Whether every step of `loop` (covered, of known trip count) updates a slice of leaf `leaf` of its
// state, and the slices of all steps cover the leaf: its value before the loop is not in the
// result. Also false if there are too many steps to check.
bool is_overwritten(const hlo::Instr* loop, int64_t leaf);

}  // namespace heddle::fuse
