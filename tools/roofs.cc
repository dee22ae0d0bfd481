#include "roofs.h"

#include <algorithm>

namespace heddle::tools {

double rate_of(int64_t amount, double ms) {
  return ms > 0 ? static_cast<double>(amount) / ms / 1e6 : 0;
}

Roofs roofs_of(double flops_per_ns, double bytes_per_ns, const std::vector<MeasuredWork>& kernels) {
  Roofs roofs{flops_per_ns, bytes_per_ns, false};
  if (roofs.flops_per_ns <= 0 || roofs.bytes_per_ns <= 0) return {};
  for (const MeasuredWork& work : kernels) {
    const double flops = rate_of(work.flops, work.ms), bytes = rate_of(work.bytes, work.ms);
    roofs.raised |= flops > roofs.flops_per_ns || bytes > roofs.bytes_per_ns;
    roofs.flops_per_ns = std::max(roofs.flops_per_ns, flops);
    roofs.bytes_per_ns = std::max(roofs.bytes_per_ns, bytes);
  }
  return roofs;
}

double roofline_share(const MeasuredWork& work, const Roofs& roofs) {
  if (work.ms <= 0 || roofs.flops_per_ns <= 0) return 0;
  return std::max(rate_of(work.flops, work.ms) / roofs.flops_per_ns,
                  rate_of(work.bytes, work.ms) / roofs.bytes_per_ns);
}

}  // namespace heddle::tools
