#include "runtime/pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>

namespace heddle::runtime {
namespace {

TEST(spsc_queue, AllThatIsPushedComesOutInOrder) {
  for (const size_t slots : {1, 2, 7, 64}) {
    SpscQueue<int> queue(slots);
    constexpr int kCount = 20000;
    std::thread producer([&] {
      for (int i = 0; i < kCount; ++i) queue.push(i);
    });
    int batch[5], next = 0;
    while (next < kCount) {
      const size_t count = queue.pop(batch, 1 + static_cast<size_t>(next % 5));
      ASSERT_GE(count, 1u);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(batch[i], next++);
    }
    producer.join();
  }
}

struct Ran {
  std::atomic<int> steps[3]{};
  std::string error;
  int64_t place = -1;  // in the order of completion
};

// Steps of random length, some of which fail.
void check(bool threads, size_t slots, uint64_t seed) {
  constexpr int kTasks = 200;
  std::vector<Ran> ran(kTasks);
  std::vector<int> fails(kTasks, -1);
  std::mt19937_64 random(seed);
  int64_t place = 0;
  std::atomic<int> running[3]{};
  {
    Pipeline pipeline(slots, threads);
    ASSERT_EQ(pipeline.has_threads(), threads);
    for (int t = 0; t < kTasks; ++t) {
      if (random() % 4 == 0) fails[t] = static_cast<int>(random() % 3);
      Pipeline::Task task;
      task.name = "run " + std::to_string(t);
      for (int s = 0; s < 3; ++s) {
        if (fails[t] != s && random() % 5 == 0) {
          ran[t].steps[s] = 1;  // nothing to do
          continue;
        }
        const auto pause = std::chrono::microseconds(random() % 3 == 0 ? random() % 80 : 0);
        task.steps[s] = [&, t, s, pause]() -> Status {
          EXPECT_EQ(running[s].fetch_add(1), 0) << "two at once in one step";
          EXPECT_TRUE(s == 0 || ran[t].steps[s - 1] == 1) << "out of turn";
          std::this_thread::sleep_for(pause);
          ran[t].steps[s] = 1;
          running[s].fetch_sub(1);
          if (fails[t] == s) return user_error("step {} fails", s);
          return {};
        };
      }
      task.done = [&, t](const Status& status) {
        ran[t].place = place++;
        if (!status) ran[t].error = status.error().message;
      };
      pipeline.submit(std::move(task));
      if (t == kTasks / 2) {
        pipeline.drain();
        ASSERT_EQ(place, t + 1);
      }
    }
  }
  for (int t = 0; t < kTasks; ++t) {
    EXPECT_EQ(ran[t].place, t);
    if (fails[t] < 0) {
      EXPECT_EQ(ran[t].error, "");
    } else {
      EXPECT_EQ(ran[t].error,
                "run " + std::to_string(t) + ": step " + std::to_string(fails[t]) + " fails");
      // The remaining steps of its chain are skipped; the next task runs.
      for (int s = fails[t] + 1; s < 3; ++s) {
        EXPECT_LE(ran[t].steps[s], 1);
      }
    }
  }
}

TEST(pipeline, RandomDelaysAndErrors) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    check(true, size_t{1} << seed % 5, seed);
    check(false, 4, seed);
  }
}

TEST(pipeline, AnErrorLeavesOutTheRestOfItsChainOnly) {
  for (const bool threads : {false, true}) {
    Pipeline pipeline(4, threads);
    std::atomic<int> later{0}, others{0};
    std::string first;
    Pipeline::Task bad;
    bad.name = "bad";
    bad.steps = {[]() -> Status { return user_error("no such bucket"); },
                 [&]() -> Status { return ++later, Status(); },
                 [&]() -> Status { return ++later, Status(); }};
    bad.done = [&](const Status& status) { first = status.error().message; };
    Pipeline::Task good;
    good.steps[2] = [&]() -> Status { return ++others, Status(); };
    pipeline.submit(bad);
    pipeline.submit(good);
    pipeline.drain();
    EXPECT_EQ(first, "bad: no such bucket");
    EXPECT_EQ(later, 0);
    EXPECT_EQ(others, 1);
  }
}

// Two concurrent steps: the second step of a task waits for the first step of the next task.
TEST(pipeline, StepsOfDifferentTasksRunSideBySide) {
  Pipeline pipeline(4, true);
  std::atomic<bool> second_began{false};
  bool seen = false;
  Pipeline::Task one, two;
  one.steps[2] = [&]() -> Status {
    second_began.wait(false);
    seen = true;
    return {};
  };
  two.steps[0] = [&]() -> Status {
    second_began = true;
    second_began.notify_all();
    return {};
  };
  pipeline.submit(std::move(one));
  pipeline.submit(std::move(two));
  pipeline.drain();
  EXPECT_TRUE(seen);
}

TEST(pipeline, SeveralThreadsSubmit) {
  Pipeline pipeline(2, true);
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int t = 0; t < 100; ++t) {
        Pipeline::Task task;
        task.done = [&](const Status&) { ++done; };
        pipeline.submit(std::move(task));
      }
      pipeline.drain();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 400);
}

TEST(pipeline, PaysWithMoreThanTwoCores) {
  EXPECT_FALSE(Pipeline::pays(1));
  EXPECT_FALSE(Pipeline::pays(2));
  EXPECT_TRUE(Pipeline::pays(4));
}

}  // namespace
}  // namespace heddle::runtime
