// The rates of the processor's instructions for words, on registers: one line of JSON with the G
// operations a second of `bf16` (vdpbf16ps) and `bytes` (vpdpbusd), by the thread's own clock; the
// fastest of some short runs. 0 where it lacks one.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace {

constexpr int64_t kTrips = 100000;
constexpr int kSums = 16;  // more than the latency of the instruction times two

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The empty assembly keeps every sum, and the operands in registers.
__attribute__((target("avx512f,avx512vnni"))) void add_bytes() {
  __m512i sums[kSums] = {}, a = _mm512_set1_epi32(0x01020304), b = a;
  for (int64_t i = 0; i < kTrips; ++i)
#pragma GCC unroll 16
    for (auto& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, a, b);
      __asm__ volatile("" : "+v"(sum), "+v"(a), "+v"(b));
    }
}

__attribute__((target("avx512f,avx512bf16"))) void add_pairs() {
  __m512 sums[kSums] = {};
  auto a = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80)), b = a;
  for (int64_t i = 0; i < kTrips; ++i)
#pragma GCC unroll 16
    for (auto& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, a, b);
      __asm__ volatile("" : "+v"(sum), "+v"(a), "+v"(b));
    }
}

double rate(void (*run)(), double operations) {
  double best = 1e9;
  for (int i = 0; i < 100; ++i) {
    const double begin = seconds_now();
    run();
    best = std::min(best, seconds_now() - begin);
  }
  return operations * kTrips * kSums / best / 1e9;
}

}  // namespace

int main() {
  __builtin_cpu_init();
  const bool bytes = __builtin_cpu_supports("avx512vnni");
  const bool pairs = __builtin_cpu_supports("avx512bf16");
  std::printf("{\"bf16\": %.1f, \"bytes\": %.1f}\n", pairs ? rate(add_pairs, 64) : 0,
              bytes ? rate(add_bytes, 128) : 0);
  return 0;
}
