// Private to fuse: scatters of rows become kernels.
#pragma once

#include "fuse/groups.h"

namespace heddle::fuse {

// Scatters of rows into one table, one into the result of the other, become one fusion; zeros that
// the first one begins with are made there (schedule/scatter.h). A table that may be overwritten,
// and that nobody else reads, is changed where it lies (hlo/in_place.h). Only for a cpu.
bool fuse_scatters(const Covered& covered, const target::Target& target);

}  // namespace heddle::fuse
