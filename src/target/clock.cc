#include "target/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace heddle::target {

double measured_clock_ghz() {
#if defined(__x86_64__)
  constexpr int64_t kRounds = 20000, kAdditions = 16;
  double best = 0;
  for (int attempt = 0; attempt < 40; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    uint64_t value = 1;
    for (int64_t i = 0; i < kRounds; ++i) {
      // Each addition depends on the previous one.
      __asm__ volatile(
          "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
          "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
          "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
          "add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
          : "+r"(value));
    }
    const double ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    if (ns > 0) best = std::max(best, static_cast<double>(kRounds * kAdditions) / ns);
  }
  return best;
#else
  return 0;
#endif
}

}  // namespace heddle::target
