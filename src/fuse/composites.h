// Private to fuse: kernels that cannot share their loops but could share a launch.
#pragma once

#include <cstddef>

namespace heddle::fuse {

constexpr size_t kMostParts = 16;  // of a composite

}  // namespace heddle::fuse
