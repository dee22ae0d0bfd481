#include "cost/winograd_time.h"

#include <algorithm>

#include "cost/gemm_time.h"

namespace heddle::cost {

namespace {

// Cycles of a vector of one tile: loads, sums and stores of the transforms in stitch/winograd.cc,
// with spills.
double input_cycles(int m) { return m == 2 ? 40 : 150; }
double output_cycles(int m) { return m == 2 ? 28 : 100; }

double bytes_per_cycle(const target::Target& target, size_t level) {
  const double ns = level < target.caches.size() && target.caches[level].bandwidth_bytes_per_ns > 0
                        ? target.caches[level].bandwidth_bytes_per_ns
                        : std::max(target.memory_bandwidth_bytes_per_ns, 4.0);
  return ns / std::max(target.clock_ghz, 0.5);
}

}  // namespace

WinogradTiles tiles_of(const stage::WinogradShape& shape, int m) {
  return {(shape.height + m - 1) / m, (shape.width + m - 1) / m};
}

bool stays_in_second_cache(const stage::Winograd& winograd, const stage::WinogradShape& shape,
                           const target::Target& target) {
  const int64_t points = int64_t{winograd.m + 2} * (winograd.m + 2);
  const int64_t second = target.second_cache_bytes();
  return points * shape.channels * shape.features * 4 < second / 2;
}

double winograd_cycles(const stage::Winograd& winograd, const stage::WinogradShape& shape,
                       const target::Target& target) {
  const WinogradTiles all = tiles_of(shape, winograd.m);
  const int64_t points = int64_t{winograd.m + 2} * (winograd.m + 2);
  const int64_t tiles = winograd.lines * all.across;
  const int64_t lanes = winograd.tile.lanes;
  const double vectors_in = static_cast<double>(tiles * (shape.channels / lanes));
  const double vectors_out = static_cast<double>(tiles * (winograd.columns / lanes));
  double cycles = vectors_in * input_cycles(winograd.m) + vectors_out * output_cycles(winograd.m);
  const double products =
      static_cast<double>(points) *
      gemm_cycles(winograd.tile, tiles, winograd.columns, shape.channels, target);
  // The filter is read once per task, and prefetched; data between the three steps that overflows
  // the second cache goes through the third.
  const int64_t second = target.second_cache_bytes();
  const double filter = static_cast<double>(points * shape.channels * winograd.columns * 4);
  const bool resident = stays_in_second_cache(winograd, shape, target);
  const double stream = resident ? 0 : filter / bytes_per_cycle(target, 2);
  cycles += std::max(products, stream) + 0.25 * std::min(products, stream);
  const double between =
      static_cast<double>(points * tiles * (shape.channels + winograd.columns) * 4);
  if (between > 0.75 * static_cast<double>(second))
    cycles += 2 * between / bytes_per_cycle(target, 2);
  const int64_t tasks = shape.images * ((all.lines + winograd.lines - 1) / winograd.lines) *
                        (shape.features / winograd.columns);
  const int64_t rounds = (tasks + target.cores - 1) / target.cores;
  return cycles * static_cast<double>(rounds * target.cores);
}

double direct_cycles(const stage::WinogradShape& shape, const target::Target& target) {
  constexpr double kUsualRate = 0.92;  // of the peak
  const double products = 9.0 * static_cast<double>(shape.images * shape.height * shape.width) *
                          static_cast<double>(shape.channels * shape.features);
  return products / (target.lanes(tensor::Type::f32) * std::max(1, target.fma_per_cycle)) /
         kUsualRate;
}

}  // namespace heddle::cost
