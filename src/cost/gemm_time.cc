#include "cost/gemm_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::cost {

namespace {

// Cycles to begin and to end a tile. The lines for its results are fetched at once; lines beyond
// the number of misses that a core can have outstanding are late, and delay what follows.
double ends_of_tile(double rows, double vectors, int lanes) {
  constexpr double kMostMisses = 16, kLate = 6;
  const double lines = rows * std::ceil(vectors * lanes * 4 / 64);
  return 20 + 1.5 * rows * vectors + kLate * std::max(0.0, lines - kMostMisses);
}

}  // namespace

double flops_per_ns(const stage::Gemm& gemm, tensor::Type sums, const target::Target& target) {
  if (gemm.tile) return target.peak_flops_per_ns(gemm.tile->name);
  return target.peak_flops_per_ns(gemm.word() > 1 ? gemm.mma->b : sums);
}

double gemm_cycles(const stage::Gemm& gemm, int64_t m, int64_t n, int64_t k,
                   const target::Target& target) {
  auto tile = [&](double rows, double vectors) {
    double fma = rows * vectors / std::max(1, target.fma_per_cycle);
    double cycles = std::max({fma, 4.0, (rows + vectors) / 2});
    double blocks = gemm.kc > 0 ? static_cast<double>((k + gemm.kc - 1) / gemm.kc) : 1;
    return static_cast<double>(k) * cycles + (blocks - 1) * (20 + 1.5 * rows * vectors) +
           ends_of_tile(rows, vectors, gemm.lanes);
  };
  int64_t width = int64_t{gemm.nv} * gemm.lanes;
  int64_t tiles = (m + gemm.mr - 1) / gemm.mr;
  int64_t low = m / tiles, high_count = m - low * tiles;
  auto column = [&](double vectors) {
    return static_cast<double>(high_count) * tile(static_cast<double>(low + 1), vectors) +
           static_cast<double>(tiles - high_count) * tile(static_cast<double>(low), vectors);
  };
  int64_t full = n / width, rest = n % width;
  double total = static_cast<double>(full) * column(gemm.nv);
  if (rest) total += column(static_cast<double>((rest + gemm.lanes - 1) / gemm.lanes));
  return total;
}

double fetching_ahead(const stage::Gemm& gemm, int64_t rows, const target::Target& target) {
  const int64_t tiles = (rows + gemm.mr - 1) / gemm.mr;
  const double height = static_cast<double>(rows) / static_cast<double>(tiles), nv = gemm.nv;
  const double cycles =
      std::max({height * nv / std::max(1, target.fma_per_cycle), 4.0, (height + nv) / 2});
  const double lines = static_cast<double>((int64_t{gemm.nv} * gemm.ku + tiles - 1) / tiles);
  const double memory = std::max(target.memory_bandwidth_bytes_per_ns, 4.0) /
                        std::max(target.clock_ghz, 0.5);  // bytes per cycle
  const double share = lines * 64 / memory / (cycles * gemm.ku);
  return std::pow(1 + std::pow(share, 4), 0.25);
}

namespace {

// Cycles of one column panel of a convolution: tiles of `my` lines, or rows of one line in tiles of
// mr. A panel that does not fit the first cache streams from the second at 24 bytes per cycle,
// mostly overlapped with arithmetic. Rows of A that are `row_bytes` apart share sets of the first
// cache: elements of rows beyond the number that these sets hold beside B come from the second, a
// line in two cycles.
double panel_cycles(const stage::Gemm& gemm, const stage::GemmShape& shape, double vectors,
                    int64_t row_bytes, const target::Target& target) {
  const double k = static_cast<double>(shape.k_extent);
  const double bytes = vectors * gemm.lanes * 4;
  const int64_t first = target.first_cache_bytes();
  const double stream = k * bytes > static_cast<double>(first) / 2 ? bytes / 24 : 0;
  constexpr int64_t kLine = 64, kSpan = 4096;  // of sets
  const double held =
      0.75 * static_cast<double>(first / std::max(kLine, std::gcd(row_bytes, kSpan)));
  constexpr double kLatency = 4;  // of a sum, in cycles
  auto tile = [&](double rows) {
    // Close to one of these bounds, the others count a little, too.
    const double sums =
        std::max(rows * vectors / std::max(1, target.fma_per_cycle), (rows + vectors) / 2);
    double cycles = std::pow(std::pow(sums, 4) + std::pow(kLatency, 4) + std::pow(stream, 4), 0.25);
    if (rows > held) cycles = std::max(cycles, 2 * (rows - held) + vectors);
    return k * cycles + ends_of_tile(rows, vectors, gemm.lanes);
  };
  auto axis = [&](int64_t extent, int64_t most, double times) {
    const int64_t tiles = (extent + most - 1) / most;
    const int64_t low = extent / tiles, tall = extent - low * tiles;
    return static_cast<double>(tall) * tile(static_cast<double>(low + 1) * times) +
           static_cast<double>(tiles - tall) * tile(static_cast<double>(low) * times);
  };
  if (gemm.my > 1) return axis(shape.y_extent, gemm.my, static_cast<double>(shape.m_extent));
  return static_cast<double>(shape.y_extent) * axis(shape.m_extent, gemm.mr, 1);
}

}  // namespace

double window_cycles(const stage::Gemm& gemm, const stage::GemmShape& shape, int64_t row_bytes,
                     const target::Target& target) {
  const int64_t width = int64_t{gemm.nv} * gemm.lanes;
  double total = static_cast<double>(shape.n_extent / width) *
                 panel_cycles(gemm, shape, gemm.nv, row_bytes, target);
  if (int64_t rest = shape.n_extent % width)
    total += panel_cycles(gemm, shape, static_cast<double>((rest + gemm.lanes - 1) / gemm.lanes),
                          row_bytes, target);
  return total;
}

double bounded_cycles(stage::Gemm gemm, int64_t rows, int64_t m, int64_t n, int64_t k,
                      const target::Target& target) {
  const int64_t tiles = (m + gemm.mr - 1) / gemm.mr, low = m / tiles, tall = m % tiles;
  if (m > kOneBlock || tall == 0) return gemm_cycles(gemm, rows, n, k, target);
  const int64_t first = std::min(rows, tall * (low + 1));
  gemm.mr = static_cast<int>(low + 1);
  double cycles = gemm_cycles(gemm, first, n, k, target);
  gemm.mr = static_cast<int>(low);
  if (rows > first) cycles += gemm_cycles(gemm, rows - first, n, k, target);
  // With few tiles, one more for the second run is one more pass through the panels.
  constexpr double kAnotherTile = 0.15;
  return cycles * (1 + kAnotherTile / static_cast<double>(tiles));
}

}  // namespace heddle::cost
