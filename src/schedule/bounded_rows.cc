#include "schedule/bounded_rows.h"

#include <algorithm>

#include "hlo/dim_classes.h"
#include "schedule/gemm_time.h"

namespace heddle::schedule {

bool is_bounded(const hlo::Instr* instr) {
  return instr && !instr->parent()->module()->symbols.empty();
}

int64_t least_rows(const hlo::Instr* dot, int64_t rows) {
  int64_t least = rows;
  if (dot)
    for (const hlo::Symbol& symbol : dot->parent()->module()->symbols)
      if (symbol.bound > 1 && rows % symbol.bound == 0)
        least = std::min(least, rows / symbol.bound * symbol.least);
  return least;
}

double bounded_cycles(Gemm gemm, int64_t rows, int64_t m, int64_t n, int64_t k,
                      const target::Target& target) {
  const int64_t tiles = (m + gemm.mr - 1) / gemm.mr, low = m / tiles, tall = m % tiles;
  if (m > kOneBlock || tall == 0) return gemm_cycles(gemm, rows, n, k, target);
  const int64_t first = std::min(rows, tall * (low + 1));
  gemm.mr = static_cast<int>(low + 1);
  double cycles = gemm_cycles(gemm, first, n, k, target);
  gemm.mr = static_cast<int>(low);
  if (rows > first) cycles += gemm_cycles(gemm, rows - first, n, k, target);
  // Where there are few tiles one more, for the second run, is one more way through the panels.
  constexpr double kAnotherTile = 0.15;
  return cycles * (1 + kAnotherTile / static_cast<double>(tiles));
}

}  // namespace heddle::schedule
