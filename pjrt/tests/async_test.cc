// Runs that go on behind the call that asked for them. Their programs hold a custom call, which
// waits here for a gate, so that what is not yet over is known.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "driver.h"
#include "heddle/heddle.h"

namespace heddle::pjrt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Gate {
 public:
  void close() { set(false); }
  void open() { set(true); }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }

 private:
  void set(bool is_open) {
    const std::lock_guard lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
};
Gate gate;
std::atomic<int> calls;

// x + 1, no sooner than the gate lets it, and after what makes a run a long one; fails for x[0] <
// 0.
int32_t add_one(const heddle_custom_call* call, void*) {
  ++calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  gate.pass();
  const auto* from = static_cast<const float*>(call->arguments[0].data);
  auto* to = static_cast<float*>(call->results[0].data);
  if (from[0] < 0) return std::strncpy(call->error, "it is negative", 20), 1;
  for (int i = 0; i < 2; ++i) to[i] = from[i] + 1;
  return 0;
}

constexpr const char* kAddOne =
    "func.func @main(%x: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {\n"
    "  %0 = stablehlo.custom_call @test_add_one(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
    "  return %0 : tensor<2xf32>\n"
    "}\n";

class Async : public Driver {
 protected:
  void SetUp() override {
    Driver::SetUp();
    reinterpret_cast<decltype(&heddle_register_custom_call)>(symbol("heddle_register_custom_call"))(
        "test_add_one", add_one, nullptr);
    gate.open();
    ASSERT_EQ(compile(kAddOne, &executable_).message, "");
    // The first run tells that the program takes long.
    PJRT_Buffer* x = buffer({0, 0}, {2});
    std::vector<PJRT_Buffer*> y(1);
    ASSERT_EQ(execute(executable_, {x}, y).message, "");
    free_buffer(x);
    free_buffer(y[0]);
    calls = 0;
  }
  void TearDown() override {
    gate.open();
    free_executable(executable_);
    Driver::TearDown();
  }

  PJRT_Buffer* start_one(PJRT_Buffer* x, PJRT_Event** done, std::vector<int64_t> kept = {}) {
    std::vector<PJRT_Buffer*> results(1);
    EXPECT_EQ(start(executable_, {x}, results, done, std::move(kept)).message, "");
    return results[0];
  }
  static bool is_ready(PJRT_Event* event) {
    ARGS(Event_IsReady, args);
    args.event = event;
    EXPECT_EQ(outcome(api().PJRT_Event_IsReady(&args)).message, "");
    return args.is_ready;
  }
  static PJRT_Event* ready_event(PJRT_Buffer* of) {
    ARGS(Buffer_ReadyEvent, args);
    args.buffer = of;
    EXPECT_EQ(outcome(api().PJRT_Buffer_ReadyEvent(&args)).message, "");
    return args.event;
  }

  PJRT_LoadedExecutable* executable_ = nullptr;
};

TEST_F(Async, TheCallReturnsBeforeTheRunIsOver) {
  PJRT_Buffer* x = buffer({1, 2}, {2});
  gate.close();
  PJRT_Event* done = nullptr;
  PJRT_Buffer* y = start_one(x, &done, {0});
  PJRT_Event* ready = ready_event(y);
  EXPECT_FALSE(is_ready(done));
  EXPECT_FALSE(is_ready(ready));
  float copied[2] = {};
  ARGS(Buffer_ToHostBuffer, copy);
  copy.src = y;
  copy.dst = copied;
  copy.dst_size = sizeof copied;
  CALL(Buffer_ToHostBuffer, copy);
  EXPECT_FALSE(is_ready(copy.event));
  gate.open();
  EXPECT_EQ(await(copy.event).message, "");
  EXPECT_THAT(copied, ElementsAre(2, 3));
  EXPECT_EQ(await(done).message, "");
  EXPECT_EQ(await(ready).message, "");
  for (PJRT_Buffer* each : {x, y}) free_buffer(each);
}

TEST_F(Async, RunsFollowEachOtherInTheSameMemory) {
  PJRT_Buffer* x = buffer({1, 2}, {2});
  const uintptr_t memory = address(x);
  gate.close();
  std::vector<PJRT_Buffer*> all{x};
  for (int i = 0; i < 4; ++i) {
    PJRT_Event* done = nullptr;
    all.push_back(start_one(all.back(), &done));
    free_event(done);
    EXPECT_TRUE(is_deleted(all[all.size() - 2]));
  }
  gate.open();
  EXPECT_THAT(values(all.back()), ElementsAre(5, 6));
  EXPECT_EQ(address(all.back()), memory);
  EXPECT_EQ(calls, 4);
  for (PJRT_Buffer* each : all) free_buffer(each);
}

TEST_F(Async, WhatAnEarlierRunReadsIsNotOverwrittenBeforeItHas) {
  PJRT_Buffer* x = buffer({1, 2}, {2});
  gate.close();
  PJRT_Event* first = nullptr;
  PJRT_Event* second = nullptr;
  PJRT_Buffer* y = start_one(x, &first, {0});  // reads x
  PJRT_Buffer* z = start_one(x, &second);      // may overwrite it
  gate.open();
  EXPECT_EQ(await(first).message, "");
  EXPECT_EQ(await(second).message, "");
  EXPECT_THAT(values(y), ElementsAre(2, 3));
  EXPECT_THAT(values(z), ElementsAre(2, 3));
  for (PJRT_Buffer* each : {x, y, z}) free_buffer(each);
}

TEST_F(Async, AnErrorReachesWhoWaitsAndWhatFollows) {
  PJRT_Buffer* x = buffer({-1, 2}, {2});
  gate.close();
  PJRT_Event* first = nullptr;
  PJRT_Event* second = nullptr;
  PJRT_Buffer* y = start_one(x, &first, {0});
  PJRT_Buffer* z = start_one(y, &second);
  gate.open();
  EXPECT_THAT(await(first).message, HasSubstr("it is negative"));
  EXPECT_THAT(await(second).message, HasSubstr("it is negative"));
  EXPECT_THAT(await(ready_event(z)).message, HasSubstr("it is negative"));
  EXPECT_EQ(calls, 1);
  std::vector<PJRT_Buffer*> results(1);
  EXPECT_THAT(execute(executable_, {z}, results).message, HasSubstr("it is negative"));
  for (PJRT_Buffer* each : {x, y, z}) free_buffer(each);
}

TEST_F(Async, AnotherThreadsRunIsItsOwn) {
  PJRT_Buffer* x = buffer({1, 2}, {2});
  gate.close();
  PJRT_Event* done = nullptr;
  PJRT_Buffer* y = start_one(x, &done, {0});
  std::thread other([&] {
    PJRT_Event* mine = nullptr;
    PJRT_Buffer* z = start_one(x, &mine, {0});  // beside the other one, not behind it
    EXPECT_TRUE(is_ready(mine));
    EXPECT_THAT(values(z), ElementsAre(2, 3));
    free_event(mine);
    free_buffer(z);
  });
  while (calls < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(is_ready(done));
  gate.open();
  other.join();
  EXPECT_EQ(await(done).message, "");
  for (PJRT_Buffer* each : {x, y}) free_buffer(each);
}

TEST_F(Async, ManyRunsWaitForOneAnother) {
  PJRT_Buffer* x = buffer({0, 0}, {2});
  for (int i = 0; i < 100; ++i) {
    PJRT_Event* done = nullptr;
    PJRT_Buffer* y = start_one(x, &done);
    free_event(done);
    free_buffer(x);
    x = y;
  }
  EXPECT_THAT(values(x), ElementsAre(100, 100));
  free_buffer(x);
}

}  // namespace
}  // namespace heddle::pjrt
