// The processor's own rate of fma: loops of nothing else, on registers.
#pragma once

#include <cstdint>

namespace heddle::bench {

// 28 accumulators of 16 lanes: more than latency times throughput, all in registers.
constexpr int64_t kFlopsPerTrip512 = 2 * 28 * 16;

__attribute__((noinline)) inline void fma_loop_512(int64_t trips) {
  __asm__ volatile(
      "1:\n"
      ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27\n"
      "vfmadd231ps %%zmm30, %%zmm31, %%zmm\\n\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(trips)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc");
}

// 12 accumulators of 8 lanes.
constexpr int64_t kFlopsPerTrip256 = 2 * 12 * 8;

__attribute__((noinline)) inline void fma_loop_256(int64_t trips) {
  __asm__ volatile(
      "1:\n"
      ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\n\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      "vzeroupper\n"
      : "+r"(trips)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm14", "xmm15", "cc");
}

}  // namespace heddle::bench
