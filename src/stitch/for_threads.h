// Private to stitch: a fusion of rows on a GPU, made with the threads of a subgroup or block as the
// lanes of vectors. lower/ makes threads and blocks of them.
#pragma once

#include "stitch/stitcher.h"

namespace heddle::stitch {

Stitched stitch_for_threads(const stage::PlacedFusion& placed, const std::string& name,
                            const target::Target& target);

}  // namespace heddle::stitch
