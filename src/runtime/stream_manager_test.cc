// Streams and events of a device, lent to its contexts, on the device `virtual`.
#include "runtime/stream_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "runtime/virtual_device.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNull;
using testing::UnorderedElementsAre;

VirtualOptions options(uint64_t seed, int64_t streams = 4) {
  VirtualOptions made;
  made.seed = seed;
  made.streams = streams;
  return made;
}

struct Lent {
  Lent(const Device& device, std::vector<StreamWish> wanted)
      : manager(*device.streams()), wishes(std::move(wanted)) {
    auto taken = manager.take(wishes);
    EXPECT_TRUE(taken) << taken.error().message;
    if (taken) streams = *taken;
  }
  ~Lent() { manager.give_back(streams, wishes); }
  heddle_hal_stream* operator[](size_t i) const { return streams[i]; }
  StreamManager& manager;
  std::vector<StreamWish> wishes;
  std::vector<heddle_hal_stream*> streams;
};

constexpr auto kCompute = StreamKind::compute, kToDevice = StreamKind::host_to_device;

TEST(streams, AreLentAgainByKindAndPriority) {
  VirtualDevice device(options(0));
  heddle_hal_stream *compute = nullptr, *urgent = nullptr, *copies = nullptr;
  {
    const Lent lent(device.device(), {{kCompute}, {kCompute, 1}, {kToDevice}});
    compute = lent[0], urgent = lent[1], copies = lent[2];
  }
  const StreamManager& manager = *device.device().streams();
  EXPECT_EQ(manager.counts().lent, 0);
  EXPECT_EQ(device.counts().live_streams, 3) << "kept for others";
  const Lent again(device.device(), {{kToDevice}, {kCompute, 1}, {kCompute}});
  EXPECT_THAT(again.streams, ElementsAre(copies, urgent, compute));
  EXPECT_EQ(manager.counts().made, 3);
  EXPECT_EQ(manager.counts().reused, 3);
  EXPECT_EQ(manager.counts().most_lent, 3);
}

TEST(streams, WhereThereAreNoMoreTheOneWithLeastToDoIsShared) {
  VirtualDevice device(options(0, 2));
  const Lent first(device.device(), {{kCompute, 0, 5}, {kCompute, 0, 2}});
  const Lent second(device.device(), {{kCompute, 0, 4}});
  EXPECT_EQ(second[0], first[1]);
  const Lent third(device.device(), {{kToDevice, 0, 1}, {kCompute}, {kCompute}});
  EXPECT_THAT(third.streams, ElementsAre(first[0], first[1], IsNull())) << "5 against 2 + 4";
  EXPECT_EQ(device.device().streams()->counts().shared, 3);
}

TEST(streams, OneIsWaitedForWithoutTheOthers) {
  for (uint64_t seed = 0; seed < 20; seed += 2) {
    VirtualOptions slow = options(seed);
    slow.faults.slow_stream = 2;
    VirtualDevice device(slow);
    const heddle_hal& hal = device.device().hal();
    const Lent lent(device.device(), {{kCompute}, {kCompute}});
    auto block = Block::allocate(device.device(), 128);
    ASSERT_TRUE(block);
    double value = 3, first = 0, second = 0;
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(hal.copy_on(hal.device, lent[i], block->data() + 64 * i, &value, 8), 0);
      ASSERT_EQ(
          hal.copy_on(hal.device, lent[i], i == 0 ? &first : &second, block->data() + 64 * i, 8),
          0);
    }
    ASSERT_TRUE(device.device().streams()->sync(lent[0]));
    EXPECT_EQ(first, 3);
    EXPECT_EQ(second, 0) << "that stream is slow";
    ASSERT_TRUE(device.device().streams()->sync_all());
    EXPECT_EQ(second, 3);
  }
}

TEST(streams, ALostOneIsNotLentAgain) {
  VirtualOptions faulty = options(0);
  faulty.faults.lost_stream = 1;
  VirtualDevice device(faulty);
  const heddle_hal& hal = device.device().hal();
  StreamManager& manager = *device.device().streams();
  auto block = Block::allocate(device.device(), 64);
  ASSERT_TRUE(block);
  heddle_hal_launch launch{};
  {
    const Lent lent(device.device(), {{kCompute}, {kCompute}});
    const Lent other(device.device(), {{kCompute}});
    EXPECT_NE(hal.launch_on(hal.device, lent[0], &launch), 0);
    const Status lost = manager.sync(lent[0]);
    ASSERT_FALSE(lost);
    EXPECT_THAT(lost.error().message, HasSubstr("stream 1 is lost"));
    EXPECT_FALSE(manager.sync(lent[0]));
    EXPECT_TRUE(manager.sync(lent[1]));
    EXPECT_EQ(device.counts().live_streams, 3) << "its user still has it";
  }
  EXPECT_EQ(device.counts().live_streams, 2);
  EXPECT_EQ(manager.counts().lost, 1);
  const Lent lent(device.device(), {{kCompute}, {kCompute}, {kCompute}});
  for (heddle_hal_stream* stream : lent.streams) EXPECT_TRUE(manager.sync(stream));
  EXPECT_EQ(manager.counts().made, 4);
}

TEST(streams, ALostOneIsNotSharedEither) {
  VirtualOptions faulty = options(0, 2);
  faulty.faults.lost_stream = 1;
  VirtualDevice device(faulty);
  const heddle_hal& hal = device.device().hal();
  auto block = Block::allocate(device.device(), 64);
  ASSERT_TRUE(block);
  heddle_hal_launch launch{};
  const Lent lent(device.device(), {{kCompute, 0, 1}, {kCompute, 0, 9}});
  EXPECT_NE(hal.launch_on(hal.device, lent[0], &launch), 0);
  EXPECT_FALSE(device.device().streams()->sync(lent[0]));
  const Lent other(device.device(), {{kCompute, 0, 1}});
  EXPECT_EQ(other[0], lent[1]) << "the lost one has less to do, but never will";
}

TEST(streams, ADeviceWithoutAnyIsAnError) {
  VirtualOptions none = options(0);
  none.faults.lost_at = 1;
  VirtualDevice device(none);
  char byte = 0;
  EXPECT_NE(device.device().hal().copy(device.device().hal().device, &byte, &byte, 1), 0);
  const StreamWish wish;
  const auto taken = device.device().streams()->take({&wish, 1});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind, ErrorKind::device);
  EXPECT_THAT(taken.error().message, HasSubstr("cannot make a stream: the device is lost"));
}

// Streams and events of a context are destroyed with the device's last user.
TEST(streams, GoWithTheDevicesLastUser) {
  VirtualDevice device(options(0));
  {
    auto second = Device::make(&device.device().hal());
    ASSERT_TRUE(second);
    const Device copy = *second;
    {
      const Lent lent(copy, {{kCompute}, {kCompute}});
    }
    EXPECT_EQ(device.counts().live_streams, 2);
  }
  EXPECT_EQ(device.counts().live_streams, 0);
}

TEST(streamsDeathTest, LeaksAreFound) {
  const auto leak = [](int what) {
    VirtualDevice device(options(0));
    const heddle_hal& hal = device.device().hal();
    void* memory = nullptr;
    heddle_hal_event* event = nullptr;
    const StreamWish wish;
    if (what == 0) (void)hal.allocate(hal.device, 8, &memory);
    if (what == 1) (void)hal.create_event(hal.device, &event);
    if (what == 2) (void)device.device().streams()->take({&wish, 1});
  };
  EXPECT_DEATH(leak(0), "8 bytes in 1 blocks, 0 streams and 0 events were not given back");
  EXPECT_DEATH(leak(1), "0 streams and 1 events were not given back");
  EXPECT_DEATH(leak(2), "1 streams were not given back");
}

TEST(events, AreLentAgainWhenBothSidesHavePassed) {
  for (const bool calls_back : {true, false}) {
    VirtualOptions slow = options(2);
    slow.faults.slow_stream = 2;
    VirtualDevice device(slow);
    heddle_hal hal = device.device().hal();
    if (!calls_back) hal.call_on = nullptr;
    auto made = Device::make(&hal);
    ASSERT_TRUE(made);
    EventManager& events = *made->events();
    const Lent lent(*made, {{kCompute}, {kCompute}});
    auto block = Block::allocate(*made, 64);
    ASSERT_TRUE(block);
    Event* event = *events.take();
    ASSERT_TRUE(events.record(event, lent[0]));
    ASSERT_TRUE(events.wait(event, lent[1]));
    events.give_back(event);
    EXPECT_EQ(events.counts().lent, 0);
    EXPECT_EQ(events.counts().passing, 1);
    ASSERT_TRUE(made->streams()->sync(lent[0]));
    Event* other = *events.take();
    EXPECT_NE(other, event) << "the stream that waits has not come to it";
    ASSERT_TRUE(made->streams()->sync_all());
    EXPECT_EQ(events.counts().passing, 0);
    const int64_t were_made = events.counts().made;
    std::vector<Event*> again = {other};
    while (std::ssize(again) < were_made) again.push_back(*events.take());
    EXPECT_NE(std::find(again.begin(), again.end(), event), again.end());
    EXPECT_EQ(events.counts().made, were_made);
    EXPECT_TRUE(*events.query(event)) << "it stands for nothing";
    for (Event* one : again) events.give_back(one);
    EXPECT_EQ(device.counts().calls > 0, calls_back);
  }
}

// The second stream records the event again, after waiting for it, and is slow: the waiting side
// has long passed.
TEST(events, AreNotLentAgainBeforeTheLastRecordHasPassed) {
  VirtualOptions slow = options(2);
  slow.faults.slow_stream = 2;
  VirtualDevice device(slow);
  EventManager& events = *device.device().events();
  const Lent lent(device.device(), {{kCompute}, {kCompute}});
  Event* event = *events.take();
  ASSERT_TRUE(events.record(event, lent[0]));
  ASSERT_TRUE(events.wait(event, lent[0]));
  ASSERT_TRUE(device.device().streams()->sync(lent[0]));
  ASSERT_TRUE(events.record(event, lent[1]));
  events.give_back(event);
  ASSERT_TRUE(device.device().streams()->sync(lent[0]));
  std::vector<Event*> others;
  for (int i = 0; i < 3; ++i) {  // waiting for a stream takes events, too
    others.push_back(*events.take());
    EXPECT_NE(others[i], event) << "the stream that records it has not come to it";
  }
  ASSERT_TRUE(device.device().streams()->sync_all());
  EXPECT_EQ(events.counts().passing, 0);
  for (Event* other : others) events.give_back(other);
}

struct Seen {
  std::vector<int>* order;
  int number;
};
void note(void* argument) {
  const auto& seen = *static_cast<Seen*>(argument);
  seen.order->push_back(seen.number);
}

TEST(events, CallsComeWhenTheyHavePassed) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const bool calls_back : {true, false}) {
      VirtualDevice device(options(seed));
      heddle_hal hal = device.device().hal();
      if (!calls_back) hal.call_on = nullptr;
      auto made = Device::make(&hal);
      ASSERT_TRUE(made);
      EventManager& events = *made->events();
      const Lent lent(*made, {{kCompute}, {kCompute}});
      std::vector<int> order;
      Seen seen[] = {{&order, 0}, {&order, 1}, {&order, 2}};
      Event* taken[] = {*events.take(), *events.take(), *events.take()};
      // 0 and 2 on the first stream, 1 on the second one, behind 0.
      ASSERT_TRUE(events.record(taken[0], lent[0]));
      ASSERT_TRUE(events.call(taken[0], note, &seen[0]));
      ASSERT_TRUE(events.wait(taken[0], lent[1]));
      ASSERT_TRUE(events.record(taken[1], lent[1]));
      ASSERT_TRUE(events.call(taken[1], note, &seen[1]));
      ASSERT_TRUE(events.sync(taken[1]));
      events.poll();
      if (!calls_back) {
        EXPECT_THAT(order, ElementsAre(0, 1)) << seed;
      }
      ASSERT_TRUE(events.record(taken[2], lent[0]));
      ASSERT_TRUE(events.call(taken[2], note, &seen[2]));
      ASSERT_TRUE(events.sync_all());
      EXPECT_THAT(order, UnorderedElementsAre(0, 1, 2)) << seed;
      EXPECT_LT(std::find(order.begin(), order.end(), 0), std::find(order.begin(), order.end(), 2));
      for (Event* event : taken) events.give_back(event);
      ASSERT_TRUE(events.sync_all());
      EXPECT_EQ(events.counts().passing, 0);
    }
}

// Everything that the host has seen happens before its later work: no event is needed, and no race
// is reported.
TEST(events, WhatTheHostHasSeenIsOver) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const bool seen : {true, false}) {
      VirtualDevice device(options(seed));
      const heddle_hal& hal = device.device().hal();
      const Lent lent(device.device(), {{kCompute}, {kCompute}});
      auto block = Block::allocate(device.device(), 64);
      ASSERT_TRUE(block);
      double value = 1;
      ASSERT_EQ(hal.copy_on(hal.device, lent[0], block->data(), &value, 8), 0);
      if (seen) {
        ASSERT_TRUE(device.device().streams()->sync(lent[0]));
      }
      ASSERT_EQ(hal.copy_on(hal.device, lent[1], block->data(), &value, 8), 0);
      EXPECT_EQ(hal.wait(hal.device) == 0, seen) << seed;
      EXPECT_EQ(device.counts().races, seen ? 0 : 1);
    }
}

// A broken device: no callback, the event is not lent again, and everything is given back.
TEST(events, ComeBackFromABrokenDevice) {
  VirtualOptions faulty = options(0);
  faulty.faults.lost_event_at = 1;
  VirtualDevice device(faulty);
  EventManager& events = *device.device().events();
  const Lent lent(device.device(), {{kCompute}, {kCompute}});
  std::vector<int> order;
  Seen seen{&order, 1};
  Event *lost = *events.take(), *never = *events.take();
  ASSERT_TRUE(events.record(lost, lent[0]));
  ASSERT_TRUE(events.wait(lost, lent[1]));
  ASSERT_TRUE(events.record(never, lent[1]));
  ASSERT_TRUE(events.call(never, note, &seen));
  const Status waited = events.sync_all();
  ASSERT_FALSE(waited);
  EXPECT_THAT(waited.error().message, HasSubstr("an event that does not happen"));
  EXPECT_FALSE(events.sync(never));
  EXPECT_THAT(order, ElementsAre());
  events.give_back(lost);
  events.give_back(never);
  EXPECT_EQ(events.counts().lent, 0);
  EXPECT_FALSE(events.record(never, lent[0]));
}

TEST(events, ThreadsShareThem) {
  VirtualDevice device(options(1, 6));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      EventManager& events = *device.device().events();
      const heddle_hal& hal = device.device().hal();
      auto block = Block::allocate(device.device(), 64);
      for (int i = 0; i < 50; ++i) {
        const Lent lent(device.device(), {{kCompute, 0, 1.0 + t}, {kCompute}});
        std::vector<int> order;
        Seen seen{&order, i};
        Event* event = *events.take();
        double value = i, back = -1;
        ASSERT_EQ(hal.copy_on(hal.device, lent[0], block->data(), &value, 8), 0);
        ASSERT_TRUE(events.record(event, lent[0]));
        ASSERT_TRUE(events.call(event, note, &seen));
        ASSERT_TRUE(events.wait(event, lent[1]));
        ASSERT_EQ(hal.copy_on(hal.device, lent[1], &back, block->data(), 8), 0);
        if (random() % 2 == 0) {
          ASSERT_TRUE(device.device().streams()->sync(lent[1]));
        } else {
          ASSERT_TRUE(events.sync_all());
        }
        ASSERT_EQ(back, i);
        events.give_back(event);
        ASSERT_TRUE(events.sync_all());
        ASSERT_THAT(order, ElementsAre(i));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.device().streams()->counts().lent + device.device().events()->counts().lent, 0);
  EXPECT_LE(device.counts().live_streams, 6);
  EXPECT_EQ(device.counts().races, 0);
}

}  // namespace
}  // namespace heddle::runtime
