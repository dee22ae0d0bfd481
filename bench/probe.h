// What the probes share: clocks, memory on large pages, a second thread at hand, lists as JSON.
// For the main function's thread only, but for what Pair runs.
#pragma once

#include <immintrin.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace heddle::bench {

inline int64_t now_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// Large pages, as allocators for tensors ask for them; touched, so that no run pays for faults.
// Never given back. Ends the program where there is no memory.
inline char* allocate(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "probe: no memory\n");
    std::exit(3);
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 1, bytes);
  return static_cast<char*>(memory);
}

// The caller's thread and, if asked for, one worker that spins as long as the pair lives, so that
// nothing pays for a wake-up.
class Pair {
 public:
  explicit Pair(bool two) {
    if (two) worker_ = std::thread([this] { serve(); });
  }

  ~Pair() {
    if (!worker_.joinable()) return;
    stop_ = true;
    worker_.join();
  }

  // work(0), and at the same time work(1) where there are two threads; returns when both are done.
  void run(std::function<void(int)> work) {
    work_ = std::move(work);
    if (worker_.joinable()) asked_.fetch_add(1, std::memory_order_release);
    work_(0);
    while (done_.load(std::memory_order_acquire) != asked_.load(std::memory_order_relaxed)) {
      _mm_pause();
    }
  }

 private:
  void serve() {
    for (int64_t seen = 0; !stop_; _mm_pause()) {
      if (asked_.load(std::memory_order_acquire) == seen) continue;
      work_(1);
      done_.store(++seen, std::memory_order_release);
    }
  }

  std::function<void(int)> work_;
  std::atomic<int64_t> asked_ = 0, done_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread worker_;
};

struct Times {
  std::vector<int64_t> wall_ns, cpu_ns;  // of each run; cpu: of the caller's thread
};

// `count` runs after one unmeasured run.
template <typename Body>
Times measure(int count, const Body& body) {
  Times times;
  body();
  for (int i = 0; i < count; ++i) {
    const int64_t wall_begin = now_ns(CLOCK_MONOTONIC);
    const int64_t cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
    body();
    times.cpu_ns.push_back(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin);
    times.wall_ns.push_back(now_ns(CLOCK_MONOTONIC) - wall_begin);
  }
  return times;
}

inline void print_list(const char* name, const std::vector<int64_t>& values) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("%s%lld", i == 0 ? "" : ", ", static_cast<long long>(values[i]));
  }
  std::printf("]");
}

// {"wall_ns": […], "cpu_ns": […]}
inline void print_times(const Times& times) {
  std::printf("{");
  print_list("wall_ns", times.wall_ns);
  std::printf(", ");
  print_list("cpu_ns", times.cpu_ns);
  std::printf("}");
}

}  // namespace heddle::bench
