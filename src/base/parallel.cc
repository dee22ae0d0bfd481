#include "base/parallel.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <thread>
#include <vector>

#include "base/check.h"

namespace heddle {
namespace {

// How long an idle worker keeps its core inside a run: pauses first, then yields (so that a machine
// with fewer cores than workers gets on), then it sleeps and the next fork pays for the wake-up.
constexpr int64_t kPauseNs = 200'000;
constexpr int64_t kSpinNs = 5'000'000;
constexpr int kPausesPerLook = 64;  // between two looks at the clock

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1'000'000'000) + time.tv_nsec;
}

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futex_wait(std::atomic<uint32_t>* word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr,
          0);
}

void futex_wake_all(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

struct Range {
  int64_t begin, end;
};

// The first tasks % threads parts are one longer.
Range part_of(int64_t tasks, int threads, int part) {
  const int64_t quotient = tasks / threads, remainder = tasks % threads;
  const int64_t begin = part * quotient + std::min<int64_t>(part, remainder);
  return {begin, begin + quotient + (part < remainder ? 1 : 0)};
}

struct alignas(64) Done {
  std::atomic<uint32_t> generation{0};
};

}  // namespace

// A fork writes the job and then bumps `generation`; worker i runs its part and stores that
// generation into done[i]; the join waits for all of them, so the job is never written while it is
// read. A worker that goes to sleep announces itself in `sleepers`, takes `wake`, looks once more
// and only then waits on `wake`: whoever changes something first and then sees a sleeper bumps
// `wake`, so no wake-up is lost.
struct Workers::State {
  explicit State(int threads) : threads(threads), done(static_cast<size_t>(threads)) {}

  void work(int worker);
  uint32_t wait_for_job(uint32_t seen);
  void sleep(uint32_t seen, bool even_in_a_run);
  void wake_sleepers();
  void join(uint32_t generation);

  const int threads;
  std::vector<Done> done;
  std::vector<std::thread> pool;

  alignas(64) std::atomic<uint32_t> generation{0};
  Function function = nullptr;  // the job; null ends the worker
  void* context = nullptr;
  int64_t tasks = 0;

  alignas(64) std::atomic<int> runs{0};
  std::atomic<int> sleepers{0};
  std::atomic<uint32_t> wake{0};
  alignas(64) std::atomic<bool> busy{false};  // a fork is under way
};

void Workers::State::work(int worker) {
  uint32_t seen = 0;
  while (true) {
    seen = wait_for_job(seen);
    if (function == nullptr) return;
    const Range part = part_of(tasks, threads, worker);
    if (part.begin < part.end) function(context, part.begin, part.end, worker);
    done[worker].generation.store(seen, std::memory_order_release);
  }
}

// The generation of the next job.
uint32_t Workers::State::wait_for_job(uint32_t seen) {
  while (true) {
    if (runs.load() == 0) sleep(seen, false);
    const int64_t start = now_ns();
    int64_t idle = 0;
    while (idle < kSpinNs) {
      for (int i = 0; i < kPausesPerLook; ++i) {
        const uint32_t now = generation.load(std::memory_order_acquire);
        if (now != seen) return now;
        pause_cpu();
      }
      if (runs.load(std::memory_order_relaxed) == 0) break;
      idle = now_ns() - start;
      if (idle > kPauseNs) std::this_thread::yield();
    }
    if (idle >= kSpinNs) sleep(seen, true);
  }
}

void Workers::State::sleep(uint32_t seen, bool even_in_a_run) {
  sleepers.fetch_add(1);
  const uint32_t ticket = wake.load();
  if (generation.load() == seen && (even_in_a_run || runs.load() == 0)) futex_wait(&wake, ticket);
  sleepers.fetch_sub(1);
}

void Workers::State::wake_sleepers() {
  if (sleepers.load() == 0) return;
  wake.fetch_add(1);
  futex_wake_all(&wake);
}

void Workers::State::join(uint32_t now) {
  for (int worker = 1; worker < threads; ++worker) {
    int64_t start = 0;
    for (int64_t looks = 0;; ++looks) {
      if (done[worker].generation.load(std::memory_order_acquire) == now) break;
      pause_cpu();
      if (looks % 1024 != 1023) continue;
      if (start == 0) start = now_ns();
      if (now_ns() - start > kPauseNs) std::this_thread::yield();
    }
  }
}

Workers::Workers(int threads) : state_(std::make_unique<State>(threads)) {
  HEDDLE_CHECK(threads >= 1, "{} threads", threads);
  for (int worker = 1; worker < threads; ++worker)
    state_->pool.emplace_back([state = state_.get(), worker] { state->work(worker); });
}

Workers::~Workers() {
  state_->function = nullptr;
  state_->generation.fetch_add(1);
  state_->wake_sleepers();
  for (std::thread& thread : state_->pool) thread.join();
}

int Workers::threads() const { return state_->threads; }

void Workers::begin_run() {
  if (state_->runs.fetch_add(1) == 0 && state_->threads > 1) state_->wake_sleepers();
}

void Workers::end_run() {
  const int before = state_->runs.fetch_sub(1);
  HEDDLE_CHECK(before > 0, "end_run without begin_run");
}

void Workers::parallel(int64_t tasks, Function function, void* context) {
  State& state = *state_;
  const int threads = state.threads;
  // One task, one thread, a fork inside a fork, or another caller at work: the same parts, here.
  if (tasks <= 1 || threads == 1 || state.busy.exchange(true, std::memory_order_acquire)) {
    for (int worker = 0; worker < threads; ++worker) {
      const Range part = part_of(tasks, threads, worker);
      if (part.begin < part.end) function(context, part.begin, part.end, worker);
    }
    return;
  }
  state.function = function;
  state.context = context;
  state.tasks = tasks;
  const uint32_t now = state.generation.fetch_add(1) + 1;
  state.wake_sleepers();
  const Range own = part_of(tasks, threads, 0);
  function(context, own.begin, own.end, 0);
  state.join(now);
  state.busy.store(false, std::memory_order_release);
}

}  // namespace heddle
