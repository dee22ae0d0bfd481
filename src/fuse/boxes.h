// Private to fuse: what kernels that put boxes where they belong write over.
#pragma once

#include <vector>

#include "fuse/groups.h"

namespace heddle::fuse {

// What the fusion puts boxes into comes from outside, and nobody else reads it.
bool has_own_arrays(const Instr* fusion);
// One of them reads what the other one writes over: an array that it puts a box into, or a donated
// one whose memory a result takes, unless the reader leads to that. Side by side they need a copy.
bool writes_over_what_is_read(const std::vector<Instr*>& one, const std::vector<Instr*>& other);

}  // namespace heddle::fuse
