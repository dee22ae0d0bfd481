// Private to fuse: what an operator would be in a group that it joins as a producer.
#pragma once

#include "fuse/groups.h"

namespace heddle::fuse {

// Does a path inside the group lead from `instr` to a dot or a convolution?
bool feeds_dot(const Instr* instr, const Group& group);
// Does a window of the group read it, or a gather, at once or through other operators? They may
// look at an element several times.
bool feeds_window(const Instr* instr, const Group& group);

bool reduces(const Group& group);

}  // namespace heddle::fuse
