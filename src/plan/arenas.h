// Memory offsets of a section's blocks, in both spaces.
#pragma once

#include "plan/flow.h"
#include "plan/options.h"
#include "plan/sections.h"

namespace heddle::plan {

// `apart`: blocks follow each other and share nothing. Otherwise as the options say: offsets by
// search, or, for the device if memory is dynamic, separate bytes for every block, which a pool
// allocates.
void place_blocks(const Flow& flow, const Options& options, bool apart, Section& section);

}  // namespace heddle::plan
