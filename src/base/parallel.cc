#include "base/parallel.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/trace.h"

namespace heddle {
namespace {

// How long an idle worker keeps its core during a run: first it pauses, then it yields (so that a
// machine with fewer cores than workers makes progress), then it sleeps and the next fork pays for
// the wake-up.
constexpr int64_t kPauseNs = 500'000;
constexpr int64_t kSpinNs = 5'000'000;
// And after a run: the next run may follow at once, and on a virtual machine waking a sleeping core
// takes longer than many runs.
constexpr int64_t kLingerNs = 300'000;
constexpr int kPausesPerLook = 64;  // per check of the clock

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

// The first tasks % threads parts are longer by one.
Range part_of(int64_t tasks, int threads, int part) {
  const int64_t quotient = tasks / threads, remainder = tasks % threads;
  const int64_t begin = part * quotient + std::min<int64_t>(part, remainder);
  return {begin, begin + quotient + (part < remainder ? 1 : 0)};
}

// A worker's part of the current job, in one cache line. `state` is four times the job's number
// plus the part's progress.
enum : uint64_t { kOffered = 0, kClaimed = 1, kDone = 2, kProgress = 3 };
struct alignas(64) Slot {
  std::atomic<uint64_t> state{kDone};
  Workers::Function function = nullptr;  // null ends the worker
  void* context = nullptr;
  Range part{0, 0};
  std::string_view work;  // for the trace; empty while that is off

  // True for exactly one of the threads that try.
  bool claim() {
    uint64_t seen = state.load(std::memory_order_relaxed);
    return (seen & kProgress) == kOffered &&
           state.compare_exchange_strong(seen, seen | kClaimed, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void run(int worker) const {
    if (part.begin >= part.end) return;
    const int64_t begin_ns = work.empty() ? 0 : trace::now_ns();
    function(context, part.begin, part.end, worker);
    if (!work.empty()) trace::add(work, begin_ns, trace::now_ns(), "part of a worker");
  }
};

}  // namespace

// A fork offers every worker its part. The thread that claims a part runs it: the worker itself or,
// if the worker is late (asleep, or its core taken by another process), the caller after its own
// part. The join waits for claimed parts only. A slot is read after a claim and written when its
// part is done.
//
// A worker that goes to sleep reads `wake`, announces itself in `sleepers`, checks once more and
// only then waits for `wake` to change: a thread that makes a change and then sees a sleeper
// increments `wake`. A fork reads `sleepers` without a fence; if it misses one, the caller runs
// that worker's part.
struct Workers::State {
  explicit State(int threads) : threads(threads), slots(static_cast<size_t>(threads)) {}

  void work(int worker);
  void wait_for_part(Slot& slot);
  void sleep(const Slot& slot, bool even_in_a_run);
  void wake_sleepers();
  void join();

  const int threads;
  std::vector<Slot> slots;  // by worker; the caller's is not used
  std::vector<std::thread> pool;
  uint64_t job = 0;

  alignas(64) std::atomic<int> runs{0};
  std::atomic<int> sleepers{0};
  std::atomic<uint32_t> wake{0};
  alignas(64) std::atomic<bool> busy{false};  // a fork is in progress
};

void Workers::State::work(int worker) {
  trace::name_thread(fmt::format("worker {}", worker));
  Slot& slot = slots[worker];
  while (true) {
    wait_for_part(slot);
    if (slot.function == nullptr) return;
    slot.run(worker);
    slot.state.fetch_add(kDone - kClaimed, std::memory_order_release);
  }
}

// Returns when the part is claimed. If the caller took the part of a job, that restarts the idle
// time.
void Workers::State::wait_for_part(Slot& slot) {
  while (true) {
    int64_t start = now_ns(), idle = 0;
    uint64_t seen = slot.state.load(std::memory_order_relaxed) / 4;
    while (idle < (runs.load(std::memory_order_relaxed) > 0 ? kSpinNs : kLingerNs)) {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (slot.claim()) return;
        pause_cpu();
      }
      const uint64_t now = slot.state.load(std::memory_order_relaxed) / 4;
      if (std::exchange(seen, now) != now) start = now_ns();
      idle = now_ns() - start;
      if (idle > kPauseNs) std::this_thread::yield();
    }
    sleep(slot, idle >= kSpinNs);
  }
}

void Workers::State::sleep(const Slot& slot, bool even_in_a_run) {
  // In this order: a waker that resets our count increments `wake` after we read the ticket.
  const uint32_t ticket = wake.load();
  sleepers.fetch_add(1);
  const bool offered = (slot.state.load() & kProgress) == kOffered;
  if (!offered && (even_in_a_run || runs.load() == 0)) futex_wait(&wake, ticket);
}

void Workers::State::wake_sleepers() {
  // Reset by the waker, so that forks do not wake a worker again that has not got its core yet.
  if (sleepers.exchange(0) == 0) return;
  wake.fetch_add(1);
  futex_wake_all(&wake);
}

// First runs the parts of late workers, then waits for the others.
void Workers::State::join() {
  for (int worker = 1; worker < threads; ++worker) {
    Slot& slot = slots[worker];
    if (!slot.claim()) continue;
    slot.run(worker);
    slot.state.store(job | kDone, std::memory_order_relaxed);
  }
  for (int worker = 1; worker < threads; ++worker) {
    const Slot& slot = slots[worker];
    int64_t start = 0;
    for (int64_t looks = 0; slot.state.load(std::memory_order_acquire) != (job | kDone); ++looks) {
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
  for (Slot& slot : state_->slots) {
    slot.function = nullptr;
    slot.state.store(kOffered);
  }
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
  // One task, one thread, a nested fork, or another caller active: runs the same parts here.
  if (tasks <= 1 || threads == 1 || state.busy.exchange(true, std::memory_order_acquire)) {
    for (int worker = 0; worker < threads; ++worker) {
      const Range part = part_of(tasks, threads, worker);
      if (part.begin < part.end) function(context, part.begin, part.end, worker);
    }
    return;
  }
  state.job += 4;
  const std::string_view work = trace::recording() ? trace::work() : std::string_view();
  for (int worker = 1; worker < threads; ++worker) {
    Slot& slot = state.slots[worker];
    slot.function = function;
    slot.context = context;
    slot.work = work;
    slot.part = part_of(tasks, threads, worker);
    slot.state.store(state.job | kOffered, std::memory_order_release);
  }
  if (state.sleepers.load(std::memory_order_relaxed) > 0) state.wake_sleepers();
  const Range own = part_of(tasks, threads, 0);
  function(context, own.begin, own.end, 0);
  state.join();
  state.busy.store(false, std::memory_order_release);
}

}  // namespace heddle
