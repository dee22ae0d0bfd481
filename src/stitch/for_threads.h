// Private to stitch: a fusion of rows on a GPU, with the threads of a subgroup or block as vector
// lanes. lower/ turns these into threads and blocks.
#pragma once

#include "stitch/stitcher.h"

namespace heddle::stitch {

Stitched stitch_for_threads(const stage::PlacedFusion& placed, const std::string& name,
                            const target::Target& target);

}  // namespace heddle::stitch
