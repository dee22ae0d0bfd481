// Edges that stayed between two kernels, and why.
#pragma once

#include <string>

namespace heddle::fuse {

struct Refusal {
  std::string producer, consumer, code, reason;
};

// The code of a refusal that should not be: a cover, or a plan of one, whose kernels wait for one
// another. A simpler cover took its place, so the program is right; that it happened is a bug, and
// tests take it for one.
inline constexpr const char* kInternalCycle = "internal-cycle";

}  // namespace heddle::fuse
