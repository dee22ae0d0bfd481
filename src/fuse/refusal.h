// Edges that were not fused, and why.
#pragma once

#include <string>

namespace heddle::fuse {

struct Refusal {
  std::string producer, consumer, code, reason;
};

// The code of a refusal that must not occur: a cover, or a plan of one, whose kernels wait for one
// another. A simpler cover was used instead, so the program is correct; but it is a bug, and tests
// treat it as one.
inline constexpr const char* kInternalCycle = "internal-cycle";

}  // namespace heddle::fuse
