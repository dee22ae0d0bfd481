// The time to copy so many bytes: the yardstick of memory-bound kernels. Copies as a server, so
// that rounds can be interleaved with those of others and this process is idle in between.
//
//   copy_probe BYTES THREADS
//
// For every line on standard input that holds a count, copies BYTES / 2 that often by each of three
// ways (vector stores, streaming stores, memcpy) and answers with one line of JSON: the wall and
// the caller's CPU nanoseconds of every copy, by way.
#include <immintrin.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

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

int64_t now_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// Large pages, as allocators for tensors ask for them; touched, so that no copy pays for faults.
char* allocate(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "copy_probe: no memory\n");
    std::exit(3);
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 1, bytes);
  return static_cast<char*>(memory);
}

// One worker that spins inside a round, so that a copy pays for no wake-up.
class Pair {
 public:
  Pair(bool two, size_t bytes) : split_(two ? bytes / 2 / 4096 * 4096 : bytes), bytes_(bytes) {
    if (two) worker_ = std::thread([this] { serve(); });
  }

  ~Pair() {
    if (!worker_.joinable()) return;
    stop_ = true;
    worker_.join();
  }

  void copy(Copy copy, char* to, const char* from) {
    if (worker_.joinable()) {
      copy_ = copy;
      to_ = to + split_;
      from_ = from + split_;
      asked_.fetch_add(1, std::memory_order_release);
    }
    copy(to, from, split_);
    while (done_.load(std::memory_order_acquire) != asked_.load(std::memory_order_relaxed)) {
      _mm_pause();
    }
  }

 private:
  void serve() {
    for (int64_t seen = 0; !stop_; _mm_pause()) {
      if (asked_.load(std::memory_order_acquire) == seen) continue;
      copy_(to_, from_, bytes_ - split_);
      done_.store(++seen, std::memory_order_release);
    }
  }

  size_t split_, bytes_;
  Copy copy_ = nullptr;
  char* to_ = nullptr;
  const char* from_ = nullptr;
  std::atomic<int64_t> asked_ = 0, done_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread worker_;
};

void print_list(const char* name, const std::vector<int64_t>& values) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("%s%lld", i == 0 ? "" : ", ", static_cast<long long>(values[i]));
  }
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
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
    Pair pair(threads == 2, bytes);
    for (const Way& way : ways) {
      std::vector<int64_t> wall, cpu;
      pair.copy(way.copy, to, from);
      for (int i = 0; i < count; ++i) {
        const int64_t wall_begin = now_ns(CLOCK_MONOTONIC);
        const int64_t cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
        pair.copy(way.copy, to, from);
        cpu.push_back(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin);
        wall.push_back(now_ns(CLOCK_MONOTONIC) - wall_begin);
      }
      std::printf("%s\"%s\": {", &way == ways ? "{" : ", ", way.name);
      print_list("wall_ns", wall);
      std::printf(", ");
      print_list("cpu_ns", cpu);
      std::printf("}");
    }
    std::printf("}\n");
    std::fflush(stdout);
  }
  return 0;
}
