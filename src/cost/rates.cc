#include "cost/rates.h"

#include <algorithm>
#include <vector>

namespace heddle::cost {

namespace {

using target::DeviceKind;
using target::Target;

struct Knot {
  double bytes = 0, ns = 0;
};

// Bytes per nanosecond of a cache, for `cores` cores.
double cache_rate(const Target& target, size_t level, int cores) {
  const target::Cache& cache = target.caches[level];
  // The rates of a GPU's later caches are for all multiprocessors together.
  if (target.kind == DeviceKind::gpu && level > 0) return cache.bandwidth_bytes_per_ns;
  return cache.bandwidth_bytes_per_ns * cores;
}

double memory_rate(const Target& target, int cores) {
  const double one = target.memory_bandwidth_bytes_per_ns;
  const double all = std::max(one, target.memory_bandwidth_all_bytes_per_ns);
  return std::max(1e-3, std::min(one * cores, all));
}

double read_rate(const Target& target, int cores) {
  const double rate = memory_rate(target, cores), one = target.memory_bandwidth_bytes_per_ns;
  const double part = one > 0 ? target.memory_read_bytes_per_ns / one : 0;
  return part > 0 ? std::min(1.0, part) * rate : rate;
}

// The curve of an array in cache `first` or beyond; `beyond` is the rate past the last cache.
std::vector<Knot> curve(const Target& target, size_t first, int cores, double beyond) {
  std::vector<Knot> knots{{0, 0}};
  auto add = [&](double bytes, double rate) {
    if (bytes <= knots.back().bytes || rate <= 0) return;
    knots.push_back({bytes, std::max(knots.back().ns, bytes / rate)});
  };
  for (size_t i = first; i < target.caches.size(); ++i) {
    if (target.caches[i].bandwidth_bytes_per_ns <= 0) continue;
    const double copies =
        std::max(1.0, static_cast<double>(cores) / target.caches[i].shared_by_cores);
    const double size = static_cast<double>(target.caches[i].bytes) * copies;
    add(size / 4, cache_rate(target, i, cores));
    const bool last = i + 1 == target.caches.size();
    add(size, last ? beyond : cache_rate(target, i + 1, cores));
  }
  return knots;
}

}  // namespace

int core_count(const Target& target) {
  return std::max(1, target.kind == DeviceKind::gpu ? target.multiprocessors : target.cores);
}

double transfer_ns(Transition transition, double bytes, int cores, const Target& target) {
  if (bytes <= 0) return 0;
  if (transition == Transition::near_reg && !target.caches.empty()) {
    const bool gpu = target.kind == DeviceKind::gpu;
    const auto first = static_cast<double>(target.caches[0].bytes);
    const size_t level = gpu || target.caches.size() < 2 || 2 * bytes <= first * cores ? 0 : 1;
    return bytes / std::max(1e-3, cache_rate(target, level, cores));
  }
  // The contents of a GPU's first cache are lost when the next kernel starts.
  size_t first = target.kind == DeviceKind::gpu ? 1 : 0;
  if (transition == Transition::memory_near && target.kind == DeviceKind::cpu) first = 2;
  const double beyond =
      transition == Transition::read ? read_rate(target, cores) : memory_rate(target, cores);
  const std::vector<Knot> knots = curve(target, first, cores, beyond);
  for (size_t i = 1; i < knots.size(); ++i) {
    if (bytes > knots[i].bytes) continue;
    const Knot &a = knots[i - 1], &b = knots[i];
    return a.ns + (b.ns - a.ns) * (bytes - a.bytes) / (b.bytes - a.bytes);
  }
  return knots.back().ns + (bytes - knots.back().bytes) / beyond;
}

bool runs_serially(double flops, double bytes, double tasks) {
  return tasks <= 1 || (flops < kSerialFlops && bytes < kSerialBytes);
}

double call_ns(bool serial, int phases, const Target& target) {
  if (target.kind == DeviceKind::gpu) return phases * target.launch_ns;
  return target.serial_command_ns + (serial ? 0 : phases * target.launch_ns);
}

double overlapped_ns(double compute_ns, double moved_ns) {
  return compute_ns + moved_ns - 0.95 * std::min(compute_ns, moved_ns);
}

}  // namespace heddle::cost
