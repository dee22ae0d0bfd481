// Private to fuse: the role of an operator in a group that it joins as a producer.
#pragma once

#include "fuse/groups.h"

namespace heddle::fuse {

// Whether a path inside the group leads from `instr` to a dot or a convolution.
bool feeds_dot(const Instr* instr, const Group& group);
// Whether a window or a gather of the group reads it, directly or through other operators. These
// may read an element several times.
bool feeds_window(const Instr* instr, const Group& group);

bool reduces(const Group& group);

}  // namespace heddle::fuse
