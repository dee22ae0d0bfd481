// Private to fuse: the cover that XLA's published rules make, to count kernels against. No rule
// here knows what a kernel costs; place() has the last word, as everywhere.
//
//   producers   elementwise operators and index operators go into all their readers, a copy each;
//               expensive ones only where that computes nothing twice. A reduction ends a kernel:
//               it goes into no reader.
//   consumers   elementwise and index operators, and reductions (at most five a kernel). Products,
//               convolutions and all else are calls of a library: nothing joins them.
//   siblings    kernels over the same space that read a common value become one of several outputs,
//               and so does a producer with a reader over the same space.
#pragma once

#include <vector>

#include "fuse/groups.h"

namespace heddle::fuse {

bool cover_as_xla(const Covered& covered, const target::Target& target,
                  std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
