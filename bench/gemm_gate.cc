// Gate of the CPU back end: GEMM micro-kernels, written as kernel text, against the processor's own
// rate of fma. Each round measures a register-only fma loop, the kernel, and the loop again, on the
// thread's CPU clock; a round's fraction is the kernel's rate by the mean of the two loops' rates,
// and the gate is on the median of the rounds. Where others share the machine a whole run of rounds
// may be slow (their use of the caches does not slow the fma loop): a missed gate is run
// again, at most twice. Exit status 1 if it is missed each time.
//
//   gemm_gate [rounds]      default 41
#include <dlfcn.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "emit/llvm/emit.h"
#include "fma_loop.h"
#include "kernel/text.h"
#include "runtime/loader.h"
#include "target/target.h"

namespace heddle {
namespace {

using KernelFunction = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*);

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "gemm_gate: {}\n", message);
  std::exit(3);
}

heddle_emit_function open_emitter() {
  void* library = dlopen(HEDDLE_LLVM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) die(dlerror());
  return reinterpret_cast<heddle_emit_function>(dlsym(library, "heddle_emit"));
}

struct Gate {
  const char* name;
  std::string path, target;
  std::vector<const char*> needs;  // features of the host
  double wanted;
  int64_t m, n, k;  // C is [m,n]
  int64_t panel_columns;
  void (*fma_loop)(int64_t);
  int64_t flops_per_trip;
};

// C += A B with B packed by panels, in double.
bool check(const Gate& gate, const std::vector<float>& a, const std::vector<float>& b,
           const float* got) {
  for (int64_t i = 0; i < gate.m; ++i) {
    for (int64_t j = 0; j < gate.n; ++j) {
      double want = 0, scale = 0;
      for (int64_t k = 0; k < gate.k; ++k) {
        int64_t panel = j / gate.panel_columns, column = j % gate.panel_columns;
        double x = a[static_cast<size_t>(i * gate.k + k)];
        double y = b[static_cast<size_t>((panel * gate.k + k) * gate.panel_columns + column)];
        want += x * y;
        scale += std::abs(x * y);
      }
      if (std::abs(got[i * gate.n + j] - want) > 1e-5 * scale) return false;
    }
  }
  return true;
}

std::unique_ptr<runtime::Object> build(const Gate& gate, heddle_emit_function emit) {
  Result<target::Target> target = target::find_target(gate.target);
  if (!target) die(target.error().message);
  std::string text = read_file(gate.path), target_text = target::to_string(*target);
  const char* texts[] = {text.c_str()};
  uint8_t* object = nullptr;
  size_t bytes = 0;
  char* error = nullptr;
  if (emit(HEDDLE_EMIT_ABI, texts, 1, target_text.c_str(), nullptr, 2, &object, &bytes, &error))
    die(error);
  auto loaded = runtime::Object::load({object, bytes});
  std::free(object);
  if (!loaded) die(loaded.error().message);
  return std::move(*loaded);
}

// The rate of `body`, which does `flops` a call, over about half a millisecond.
template <typename Body>
double rate(double flops, const Body& body) {
  double begin = cpu_ns(), end = begin;
  int64_t calls = 0;
  do {
    body();
    ++calls;
    end = cpu_ns();
  } while (end - begin < 5e5);
  return flops * static_cast<double>(calls) / (end - begin);
}

bool run(const Gate& gate, heddle_emit_function emit, int rounds) {
  target::Target host = target::host_target();
  for (const char* feature : gate.needs) {
    if (!host.has(feature)) {
      fmt::print("{}: skipped, this machine lacks {}\n", gate.name, feature);
      return true;
    }
  }
  std::unique_ptr<runtime::Object> object = build(gate, emit);
  auto function = reinterpret_cast<KernelFunction>(
      const_cast<void*>(object->find(std::string(gate.name) + "_p0")));
  if (!function) die("no function in the object");
  std::vector<float> a(static_cast<size_t>(gate.m * gate.k)),
      b(static_cast<size_t>(gate.k * gate.n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 13) - 6;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 11) * 0.125f - 0.5f;
  size_t c_bytes = static_cast<size_t>(gate.m * gate.n) * sizeof(float);
  // With room behind: the kernel prefetches past the last panel.
  auto aligned = [](const void* from, size_t bytes) {
    size_t room = (bytes + (64 << 10) + 63) / 64 * 64;
    void* block = std::aligned_alloc(64, room);
    std::memset(block, 0, room);
    if (from) std::memcpy(block, from, bytes);
    return block;
  };
  void* buffers[] = {aligned(a.data(), a.size() * sizeof(float)),
                     aligned(b.data(), b.size() * sizeof(float)), aligned(nullptr, c_bytes)};
  int64_t tasks = 1 << 20;  // all of them
  function(buffers, nullptr, 0, tasks, nullptr);
  if (!check(gate, a, b, static_cast<float*>(buffers[2]))) die("the result is wrong");

  double flops = 2.0 * static_cast<double>(gate.m * gate.n * gate.k);
  constexpr int64_t kTrips = 4000;
  auto peak = [&] {
    return rate(static_cast<double>(kTrips * gate.flops_per_trip), [&] { gate.fma_loop(kTrips); });
  };
  std::vector<double> fractions, rates;
  double before = peak();
  for (int i = 0; i < rounds; ++i) {
    std::memset(buffers[2], 0, c_bytes);
    double mine = rate(flops, [&] { function(buffers, nullptr, 0, tasks, nullptr); });
    double after = peak();
    fractions.push_back(mine / ((before + after) / 2));
    rates.push_back(mine);
    before = after;
  }
  std::sort(fractions.begin(), fractions.end());
  std::sort(rates.begin(), rates.end());
  size_t middle = fractions.size() / 2;
  bool passed = fractions[middle] >= gate.wanted;
  fmt::print(
      "{}: {:.3f} of the fma peak (median of {}; {:.3f} to {:.3f}), {:.1f} Gflop/s, wanted {:.2f}: "
      "{}\n",
      gate.name, fractions[middle], rounds, fractions.front(), fractions.back(), rates[middle],
      gate.wanted, passed ? "passed" : "MISSED");
  for (void* buffer : buffers) std::free(buffer);
  return passed;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 41;
  std::string source = HEDDLE_SOURCE_DIR;
  heddle_emit_function emit = open_emitter();
  Gate gates[] = {
      {"gemm_14x32",
       source + "/src/kernel/testdata/gemm_14x32.kernel",
       "icelake",
       {"avx512f", "avx512bw", "avx512vl"},
       0.90,
       112,
       64,
       256,
       32,
       bench::fma_loop_512,
       bench::kFlopsPerTrip512},
      {"gemm_6x16",
       source + "/bench/gemm_6x16.kernel",
       "avx2",
       {"avx2", "fma"},
       0.85,
       96,
       64,
       256,
       16,
       bench::fma_loop_256,
       bench::kFlopsPerTrip256},
  };
  bool passed = true;
  for (const Gate& gate : gates) {
    bool this_one = false;
    for (int attempt = 0; attempt < 3 && !this_one; ++attempt) this_one = run(gate, emit, rounds);
    passed &= this_one;
  }
  return passed ? 0 : 1;
}
