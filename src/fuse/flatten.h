// Private to fuse: fusions over arrays of one shape as fusions over one dimension.
#pragma once

#include "hlo/module.h"

namespace heddle::fuse {

// Where every array of the fusion has the same extents, and is computed element for element, from
// scalars, or reduced to a scalar: its arrays become [n]. False: it stays as it is.
bool flatten(hlo::Computation* fusion);

}  // namespace heddle::fuse
