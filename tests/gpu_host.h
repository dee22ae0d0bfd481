// What CUDA C++ text needs to be compiled and run by the host: every thread of a block is a context
// of its own that runs until it meets others, at a barrier or a shuffle. For tests of emit/cuda on
// machines without a GPU; slow.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__ static inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)

using std::max;
using std::min;

struct HostIndex {
  unsigned x = 0;
};
static HostIndex threadIdx, blockIdx;

namespace host {

enum class State { ready, at_warp, at_block, done };
struct Thread {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(64 << 10);
  State state = State::ready;
  uint64_t given = 0;  // to a shuffle
};
static std::vector<Thread> threads;
static ucontext_t scheduler;
static std::function<void()> body;
static unsigned running = 0;

static void meet(State state) {
  threads[running].state = state;
  const unsigned self = running;
  swapcontext(&threads[self].context, &scheduler);
}

static void enter() {
  body();
  threads[running].state = State::done;
  swapcontext(&threads[running].context, &scheduler);
}

// Threads of [begin, end) that wait in `state` go on if all that are not done wait there.
static bool release(size_t begin, size_t end, State state) {
  bool any = false;
  for (size_t t = begin; t < end; ++t) {
    if (threads[t].state == State::done) continue;
    if (threads[t].state != state) return false;
    any = true;
  }
  for (size_t t = begin; t < end && any; ++t)
    if (threads[t].state == state) threads[t].state = State::ready;
  return any;
}

// As far as it can go before another warp has begun: a barrier of a warp alone is none of the
// block.
static void run_warp(size_t begin, size_t end) {
  do {
    for (size_t t = begin; t < end; ++t) {
      if (threads[t].state != State::ready) continue;
      running = threadIdx.x = static_cast<unsigned>(t);
      swapcontext(&scheduler, &threads[t].context);
    }
  } while (release(begin, end, State::at_warp));
}

// False: threads wait for others that never come.
static bool run_block() {
  for (Thread& thread : threads) {
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = nullptr;
    thread.state = State::ready;
    makecontext(&thread.context, &enter, 0);
  }
  do
    for (size_t w = 0; w < threads.size(); w += 32) run_warp(w, w + 32);
  while (release(0, threads.size(), State::at_block));
  return std::all_of(threads.begin(), threads.end(),
                     [](const Thread& thread) { return thread.state == State::done; });
}

template <typename T>
static T shuffle(T value, unsigned from) {
  static_assert(sizeof(T) <= 8);
  std::memcpy(&threads[running].given, &value, sizeof value);
  const unsigned self = running;
  meet(State::at_warp);
  std::memcpy(&value, &threads[self / 32 * 32 + from % 32].given, sizeof value);
  meet(State::at_warp);
  return value;
}

template <typename... Types, size_t... I>
static int launch(void (*function)(Types...), void* const* buffers, long long blocks, int count,
                  std::index_sequence<I...>) {
  threads.resize(static_cast<size_t>(count));
  body = [=] { function(static_cast<Types>(buffers[I])...); };
  for (long long block = 0; block < blocks; ++block) {
    blockIdx.x = static_cast<unsigned>(block);
    if (!run_block()) return 1;
  }
  return 0;
}
template <typename... Types>
static int launch(void (*function)(Types...), void* const* buffers, long long blocks, int count) {
  return launch(function, buffers, blocks, count, std::index_sequence_for<Types...>());
}

template <typename To, typename From>
static To cast_bits(From from) {
  To to;
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace host

static void __syncthreads() { host::meet(host::State::at_block); }
static void __syncwarp() { host::meet(host::State::at_warp); }
template <typename T>
static T __shfl_xor_sync(unsigned, T value, int mask) {
  return host::shuffle(value, (host::running % 32) ^ static_cast<unsigned>(mask));
}
template <typename T>
static T __shfl_sync(unsigned, T value, int lane) {
  return host::shuffle(value, static_cast<unsigned>(lane));
}
template <typename T>
static void __stcs(T* to, T value) {
  *to = value;
}
static float __fdividef(float a, float b) { return b > 0x1p126f ? 0 : a / b; }
static float __int_as_float(int bits) { return host::cast_bits<float>(bits); }
static float __uint_as_float(unsigned bits) { return host::cast_bits<float>(bits); }
static unsigned __float_as_uint(float x) { return host::cast_bits<unsigned>(x); }
static double __longlong_as_double(long long bits) { return host::cast_bits<double>(bits); }
static long long __double_as_longlong(double x) { return host::cast_bits<long long>(x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static int __clzll(long long x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
static int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
static unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
static long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
static float __double2float_rz(double x) {
  const float nearest = static_cast<float>(x);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(x) ? std::nextafterf(nearest, 0.0f)
                                                                : nearest;
}

// In place of what the text says in the GPU's assembly.
static float max_nan(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
static float min_nan(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }
static double max_nan(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
static double min_nan(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
static float from_half(unsigned short h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const float sign = h >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexpf(static_cast<float>(1024 + mantissa), exponent - 25)
                          : ldexpf(static_cast<float>(mantissa), -24));
}
static unsigned short to_half(double x) {
  const unsigned short sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::fabs(x);
  if (x != x) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<unsigned short>(sign |
                                     (size < 0x1p-14 ? steps : ((exponent + 14) << 10) + steps));
}
