// Private to fuse: arrays that kernels with in-place updates overwrite.
#pragma once

#include <vector>

#include "fuse/groups.h"

namespace heddle::fuse {

// Whether the arrays that the fusion updates in place come from outside and have no other reader.
bool has_own_arrays(const Instr* fusion);
// Whether one of them reads an array that the other overwrites: by an in-place update, or as a
// donated array whose memory a result takes, unless the reader leads to that result. Run together,
// they would need a copy.
bool writes_over_what_is_read(const std::vector<Instr*>& one, const std::vector<Instr*>& other);

}  // namespace heddle::fuse
