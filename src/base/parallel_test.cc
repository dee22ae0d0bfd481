#include "base/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace heddle {
namespace {

struct Call {
  int64_t begin, end;
  int worker;
  auto operator<=>(const Call&) const = default;
};

struct Recorder {
  std::vector<std::vector<Call>> by_worker;
  explicit Recorder(int threads) : by_worker(static_cast<size_t>(threads)) {}
  static void record(void* context, int64_t begin, int64_t end, int worker) {
    static_cast<Recorder*>(context)->by_worker[worker].push_back({begin, end, worker});
  }
  std::vector<Call> all() const {
    std::vector<Call> calls;
    for (const auto& list : by_worker) calls.insert(calls.end(), list.begin(), list.end());
    std::sort(calls.begin(), calls.end());
    return calls;
  }
};

TEST(workers, SplitsAreContiguousBalancedAndTheSameEveryTime) {
  for (int threads : {1, 2, 3, 5}) {
    Workers workers(threads);
    for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000}) {
      Recorder first(threads), second(threads);
      workers.parallel(tasks, &Recorder::record, &first);
      workers.begin_run();
      workers.parallel(tasks, &Recorder::record, &second);
      workers.end_run();
      const std::vector<Call> calls = first.all();
      EXPECT_EQ(calls, second.all());
      int64_t next = 0, least = tasks, most = 0;
      for (const Call& call : calls) {
        EXPECT_EQ(call.begin, next);
        next = call.end;
        least = std::min(least, call.end - call.begin);
        most = std::max(most, call.end - call.begin);
      }
      EXPECT_EQ(next, tasks);
      EXPECT_EQ(static_cast<int64_t>(calls.size()), std::min<int64_t>(tasks, threads));
      EXPECT_TRUE(calls.empty() || most - least <= 1);
    }
  }
}

TEST(workers, HugeTaskCountsDoNotOverflow) {
  Workers workers(3);
  Recorder recorder(3);
  workers.parallel(INT64_MAX, &Recorder::record, &recorder);
  const std::vector<Call> calls = recorder.all();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls.back().end, INT64_MAX);
}

TEST(workers, JoinsBeforeItReturns) {
  Workers workers(4);
  workers.begin_run();
  std::vector<int64_t> values(4096, 0);
  for (int round = 0; round < 2000; ++round) {
    workers.parallel(
        static_cast<int64_t>(values.size()),
        [](void* context, int64_t begin, int64_t end, int) {
          auto& v = *static_cast<std::vector<int64_t>*>(context);
          for (int64_t i = begin; i < end; ++i) ++v[i];
        },
        &values);
    ASSERT_EQ(values.front(), round + 1);
    ASSERT_EQ(values.back(), round + 1);
  }
  workers.end_run();
  for (int64_t value : values) ASSERT_EQ(value, 2000);
}

// The caller waits while a worker runs its part.
TEST(workers, JoinsWhatIsUnderWay) {
  struct Run {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> begun{false}, done{false};
  };
  Workers workers(2);
  workers.begin_run();
  std::array<Run, 100> runs;
  int by_worker = 0;
  for (Run& run : runs) {
    workers.parallel(
        2,
        [](void* context, int64_t, int64_t, int worker) {
          Run& run = *static_cast<Run*>(context);
          const bool is_caller = run.caller == std::this_thread::get_id();
          // A worker that is late leaves its part to the caller.
          for (int i = 0; worker == 0 && i < 20 && !run.begun; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          if (worker == 0) return;
          run.begun = !is_caller;
          if (!is_caller) std::this_thread::sleep_for(std::chrono::milliseconds(5));
          run.done = true;
        },
        &run);
    const bool joined = run.done;
    while (!run.done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(joined);
    by_worker += run.begun;
    if (by_worker == 5) break;
  }
  workers.end_run();
  EXPECT_GT(by_worker, 0);
}

TEST(workers, WakesSleepersOutsideARunAndBetweenRuns) {
  Workers workers(3);
  std::atomic<int64_t> sum{0};
  auto add = [](void* context, int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) *static_cast<std::atomic<int64_t>*>(context) += i;
  };
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));
    if (round % 2 == 1) workers.begin_run();
    workers.parallel(100, add, &sum);
    if (round % 2 == 1) workers.end_run();
  }
  EXPECT_EQ(sum.load(), 20 * 4950);
}

TEST(workers, ALongPauseInsideARunIsSurvived) {
  Workers workers(2);
  workers.begin_run();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // beyond the spinning time
  Recorder recorder(2);
  workers.parallel(10, &Recorder::record, &recorder);
  EXPECT_EQ(recorder.all().size(), 2u);
  workers.end_run();
}

TEST(workers, NestedAndConcurrentCallersDoTheirOwnParts) {
  Workers workers(3);
  struct Nest {
    Workers* workers;
    std::atomic<int64_t> count{0};
  } nest{&workers};
  static constexpr auto kInner = +[](void* context, int64_t begin, int64_t end, int) {
    static_cast<Nest*>(context)->count += end - begin;
  };
  auto outer = [](void* context, int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<Nest*>(context)->workers->parallel(10, kInner, context);
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) workers.parallel(6, outer, &nest);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(nest.count.load(), 3 * 50 * 6 * 10);
}

TEST(workers, BeginRunNestsByCount) {
  Workers workers(2);
  workers.begin_run();
  workers.begin_run();
  workers.end_run();
  Recorder recorder(2);
  workers.parallel(4, &Recorder::record, &recorder);
  workers.end_run();
  EXPECT_EQ(recorder.all().size(), 2u);
}

double ns_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// With empty parts the caller finishes before a worker sees its part; with parts of some
// microseconds both run, and the overhead of fork and join shows.
TEST(workers, PrintsForkJoinTime) {
  Workers workers(2);
  auto spin = [](void* context, int64_t begin, int64_t end, int worker) {
    double value = static_cast<double>(begin + end);
    for (int i = 0; i < 1000; ++i) value = value * 0.999 + 0.5;
    static_cast<double*>(context)[worker * 16] += value > 0 ? 1 : 0;
  };
  auto nothing = [](void*, int64_t, int64_t, int) {};
  std::vector<double> counts(32);
  std::vector<double> empty, alone, both;
  workers.begin_run();
  for (int round = 0; round < 200; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) workers.parallel(2, nothing, nullptr);
    empty.push_back(ns_since(start) / 20);
    start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) spin(counts.data(), 0, 1, 0);
    alone.push_back(ns_since(start) / 20);
    start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) workers.parallel(2, spin, counts.data());
    both.push_back(ns_since(start) / 20);
  }
  workers.end_run();
  EXPECT_EQ(counts[0] + counts[16], 200 * 20 * 3);
  for (auto* times : {&empty, &alone, &both}) std::sort(times->begin(), times->end());
  std::printf("fork-join of 2 threads: empty %.0f ns; parts of %.0f ns: %+.0f ns (least: %+.0f)\n",
              empty[100], alone[100], both[100] - alone[100], both[0] - alone[0]);
}

TEST(available_cores, IsPositiveAndFollowsAffinity) {
  const int all = available_cores();
  EXPECT_GE(all, 1);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(available_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(available_cores(), all);
}

}  // namespace
}  // namespace heddle
