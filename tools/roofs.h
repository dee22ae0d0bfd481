// The roofline: what arithmetic and memory traffic allow at best. Flops and bytes a nanosecond are
// 1e9 a second.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::tools {

struct MeasuredWork {
  int64_t flops = 0, bytes = 0;
  double ms = 0;
};

struct Roofs {
  double flops_per_ns = 0, bytes_per_ns = 0;  // 0: not known
  bool raised = false;  // the target promises less than a kernel reached: these are the kernel's
};

// 0 where no time is known.
double rate_of(int64_t amount, double ms);
// The target's roofs. A target file may be of a slower machine than this one, and what caches keep
// is not memory traffic: where a kernel is faster, its rate is the roof.
Roofs roofs_of(double flops_per_ns, double bytes_per_ns, const std::vector<MeasuredWork>& kernels);
// The time that arithmetic and memory traffic need at least, over the time taken: at most 1.
double roofline_share(const MeasuredWork& work, const Roofs& roofs);

}  // namespace heddle::tools
