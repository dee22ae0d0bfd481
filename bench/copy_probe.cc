// The time of a copy of BYTES bytes: the yardstick for memory-bound kernels. Runs as a server, so
// that rounds can be interleaved with those of others and this process is idle in between.
//
//   copy_probe BYTES THREADS
//
// For every line on standard input that holds a count, copies BYTES / 2 that often in each of three
// ways (vector stores, streaming stores, memcpy) and answers with one line of JSON: the wall and
// the caller's CPU nanoseconds of every copy, by way.
#include <cstring>

#include "probe.h"

namespace heddle::bench {
namespace {

using Copy = void (*)(char*, const char*, size_t);

struct Way {
  const char* name;
  Copy copy;
};

__attribute__((target("avx512f"))) void stores_512(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 256) {
    for (size_t j = 0; j < 256; j += 64) {
      _mm512_store_si512(to + i + j, _mm512_load_si512(from + i + j));
    }
  }
}

__attribute__((target("avx512f"))) void streams_512(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 256) {
    for (size_t j = 0; j < 256; j += 64) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + j), _mm512_load_si512(from + i + j));
    }
  }
  _mm_sfence();
}

__attribute__((target("avx"))) void stores_256(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 256) {
    for (size_t j = 0; j < 256; j += 32) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + i + j),
                         _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i + j)));
    }
  }
}

__attribute__((target("avx"))) void streams_256(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 256) {
    for (size_t j = 0; j < 256; j += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + j),
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i + j)));
    }
  }
  _mm_sfence();
}

void library_copy(char* to, const char* from, size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  using namespace heddle::bench;
  const size_t bytes = argc == 3 ? std::strtoull(argv[1], nullptr, 10) / 512 * 256 : 0;
  const int threads = argc == 3 ? std::atoi(argv[2]) : 0;
  if (bytes == 0 || threads < 1 || threads > 2) {
    std::fprintf(stderr, "usage: copy_probe BYTES THREADS   (THREADS: 1 or 2)\n");
    return 2;
  }
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx512f");
  const Way ways[] = {{"stores", wide ? stores_512 : stores_256},
                      {"streams", wide ? streams_512 : streams_256},
                      {"memcpy", library_copy}};
  const char* from = allocate(bytes);
  char* to = allocate(bytes);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const int count = std::atoi(line);
    Pair pair(threads == 2);
    const size_t first = threads == 2 ? bytes / 2 / 4096 * 4096 : bytes;
    for (const Way& way : ways) {
      std::printf("%s\"%s\": ", &way == ways ? "{" : ", ", way.name);
      print_times(measure(count, [&] {
        pair.run([&](int part) {
          if (part == 0)
            way.copy(to, from, first);
          else
            way.copy(to + first, from + first, bytes - first);
        });
      }));
    }
    std::printf("}\n");
    std::fflush(stdout);
  }
  return 0;
}
