// The limits of the processor: multiply-adds on registers, and reading memory. A server like
// copy_probe, so that its rounds are interleaved with those of what is measured.
//
//   roof_probe BYTES THREADS
//
// For every line on standard input that holds a count, answers with one line of JSON: "flops" of
// one run of the fma loop on all threads and its times, "bytes" of one reading and its times, by
// way (plain loads; loads with prefetches ahead). Times are the wall and the caller's CPU
// nanoseconds.
#include <string_view>

#include "fma_loop.h"
#include "probe.h"

namespace heddle::bench {
namespace {

constexpr int64_t kTrips = 20000;  // about 0.1 ms

// Four sums of integers: nothing but loads counts. The result keeps the loads alive.
template <bool kAhead>
__attribute__((target("avx512f"))) int64_t read_512(const char* from, size_t bytes) {
  __m512i sums[4] = {};
  for (size_t i = 0; i < bytes; i += 256) {
    for (size_t j = 0; j < 4; ++j) {
      if (kAhead) _mm_prefetch(from + i + j * 64 + 2048, _MM_HINT_T0);
      sums[j] = _mm512_add_epi64(sums[j], _mm512_load_si512(from + i + j * 64));
    }
  }
  alignas(64) int64_t lanes[8];
  _mm512_store_si512(lanes, _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]),
                                             _mm512_add_epi64(sums[2], sums[3])));
  return lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3] ^ lanes[4] ^ lanes[5] ^ lanes[6] ^ lanes[7];
}

template <bool kAhead>
__attribute__((target("avx2"))) int64_t read_256(const char* from, size_t bytes) {
  __m256i sums[4] = {};
  for (size_t i = 0; i < bytes; i += 128) {
    for (size_t j = 0; j < 4; ++j) {
      if (kAhead && j % 2 == 0) _mm_prefetch(from + i + j * 32 + 2048, _MM_HINT_T0);
      sums[j] = _mm256_add_epi64(
          sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i + j * 32)));
    }
  }
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  return _mm256_extract_epi64(sum, 0) + _mm256_extract_epi64(sum, 1) +
         _mm256_extract_epi64(sum, 2) + _mm256_extract_epi64(sum, 3);
}

struct Way {
  const char* name;
  int64_t (*read)(const char*, size_t);
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  using namespace heddle::bench;
  const int threads = argc == 3 ? std::atoi(argv[2]) : 0;
  const size_t step = 256 * static_cast<size_t>(threads == 2 ? 2 : 1);
  const size_t bytes = argc == 3 ? std::strtoull(argv[1], nullptr, 10) / step * step : 0;
  if (bytes == 0 || threads < 1 || threads > 2) {
    std::fprintf(stderr, "usage: roof_probe BYTES THREADS   (THREADS: 1 or 2)\n");
    return 2;
  }
  __builtin_cpu_init();
  const char* isa = std::getenv("HEDDLE_ISA");  // lowers it, as for heddle
  const bool wide = __builtin_cpu_supports("avx512f") && !(isa && std::string_view(isa) == "avx2");
  if (!__builtin_cpu_supports("fma")) {
    std::fprintf(stderr, "roof_probe: this machine has no fma\n");
    return 3;
  }
  const Way ways[] = {{"loads", wide ? read_512<false> : read_256<false>},
                      {"prefetched", wide ? read_512<true> : read_256<true>}};
  const char* from = allocate(bytes);
  const size_t part_bytes = bytes / static_cast<size_t>(threads);
  const int64_t flops = kTrips * (wide ? kFlopsPerTrip512 : kFlopsPerTrip256) * threads;
  volatile int64_t kept[2];
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const int count = std::atoi(line);
    Pair pair(threads == 2);
    std::printf("{\"flops\": %lld, \"fma\": ", static_cast<long long>(flops));
    print_times(measure(count, [&] {
      pair.run([&](int) { wide ? fma_loop_512(kTrips) : fma_loop_256(kTrips); });
    }));
    std::printf(", \"bytes\": %zu", bytes);
    for (const Way& way : ways) {
      std::printf(", \"%s\": ", way.name);
      print_times(measure(count, [&] {
        pair.run([&](int part) {
          kept[part] = way.read(from + static_cast<size_t>(part) * part_bytes, part_bytes);
        });
      }));
    }
    std::printf("}\n");
    std::fflush(stdout);
  }
  return 0;
}
