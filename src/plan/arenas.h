// Offsets of a section's blocks, in both spaces.
#pragma once

#include "plan/flow.h"
#include "plan/options.h"
#include "plan/sections.h"

namespace heddle::plan {

// `apart`: one behind the other. Else as the options say: offsets by search, or, of the device's
// where memory is dynamic, each block its own bytes for a pool to give out.
void place_blocks(const Flow& flow, const Options& options, bool apart, Section& section);

}  // namespace heddle::plan
