#include "runtime/virtual_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/race_check.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;

// y = x + 1 on one float.
void increment(void* const* buffers, const int64_t*, int64_t begin, int64_t end, void*) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float*>(buffers[1])[i] = static_cast<float*>(buffers[0])[i] + 1;
}

struct Tester {
  explicit Tester(VirtualOptions options = {})
      : device(std::move(options)), hal(device.device().hal()) {
    for (auto& stream : streams) EXPECT_EQ(hal.create_stream(hal.device, 0, &stream), 0);
    EXPECT_EQ(hal.create_event(hal.device, &event), 0);
  }
  ~Tester() {
    hal.destroy_event(hal.device, event);
    for (auto* stream : streams) hal.destroy_stream(hal.device, stream);
  }
  int launch(int stream, void* from, void* to) {
    void* buffers[] = {from, to};
    const heddle_hal_access accesses[] = {{4, 1, 0}, {4, 0, 1}};
    heddle_hal_launch launch{};
    launch.function = reinterpret_cast<const void*>(&increment);
    launch.buffers = buffers;
    launch.tasks = 1;
    launch.buffer_count = 2;
    launch.accesses = accesses;
    return hal.launch_on(hal.device, streams[stream], &launch);
  }
  std::string error() const { return hal.last_error(hal.device); }

  VirtualDevice device;
  const heddle_hal& hal;
  heddle_hal_stream* streams[2] = {};
  heddle_hal_event* event = nullptr;
};

TEST(virtual_device, OptionsAreRead) {
  auto options = parse_virtual("spr,capacity=1024,streams=2,seed=7,no-memory=3,lost=9");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->name, "spr");
  EXPECT_EQ(options->capacity_bytes, 1024);
  EXPECT_EQ(options->streams, 2);
  EXPECT_EQ(options->seed, 7u);
  EXPECT_EQ(options->faults, (VirtualFaults{3, 0, 9, 0, 0}));
  EXPECT_THAT(parse_virtual("spr,size=3").error().message, HasSubstr("wanted capacity"));
  EXPECT_THAT(parse_virtual("spr,seed=x").error().message, HasSubstr("KEY=NUMBER"));
  EXPECT_FALSE(parse_virtual(""));
}

TEST(virtual_device, MemoryHasACapacityAndIsPoisoned) {
  VirtualOptions options;
  options.capacity_bytes = 256;
  VirtualDevice device(options);
  auto first = Block::allocate(device.device(), 128);
  ASSERT_TRUE(first);
  float value = 0;
  ASSERT_TRUE(device.device().copy_now(&value, first->data(), 4));
  EXPECT_TRUE(std::isnan(value));
  auto refused = Block::allocate(device.device(), 129);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no memory for 129 bytes, 128 of 256 are in use"));
  EXPECT_TRUE(Block::allocate(device.device(), 128));
}

TEST(virtual_device, NothingHappensBeforeItIsWaitedFor) {
  Tester t;
  auto block = Block::allocate(t.device.device(), 8);
  ASSERT_TRUE(block);
  auto* at = reinterpret_cast<float*>(block->data());
  float one = 1, back = 0;
  ASSERT_EQ(t.hal.copy(t.hal.device, at, &one, 4), 0);
  one = 5;  // the copy took its bytes
  ASSERT_EQ(t.hal.copy(t.hal.device, &back, at, 4), 0);
  EXPECT_EQ(back, 0);
  ASSERT_EQ(t.hal.wait(t.hal.device), 0);
  EXPECT_EQ(back, 1);
}

TEST(virtual_device, RacesAreFoundInEveryOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool ordered : {true, false}) {
      VirtualOptions options;
      options.seed = seed;
      Tester t(options);
      auto block = Block::allocate(t.device.device(), 192);
      ASSERT_TRUE(block);
      char *a = block->data(), *b = a + 64, *c = a + 128;
      ASSERT_EQ(t.launch(0, a, b), 0);
      if (ordered) {
        ASSERT_EQ(t.hal.record(t.hal.device, t.streams[0], t.event), 0);
        ASSERT_EQ(t.hal.wait_for(t.hal.device, t.streams[1], t.event), 0);
      }
      ASSERT_EQ(t.launch(1, b, c), 0);
      EXPECT_EQ(t.hal.wait(t.hal.device), ordered ? 0 : 1) << seed;
      EXPECT_EQ(t.device.counts().races, ordered ? 0 : 1);
      if (!ordered) {
        EXPECT_THAT(t.error(), HasSubstr("launch 2 of stream 2 reads bytes that launch 1"));
      }
    }
  }
}

TEST(virtual_device, FaultsAreErrors) {
  VirtualOptions options;
  options.faults.no_memory_at = 2;
  {
    VirtualDevice device(options);
    EXPECT_TRUE(Block::allocate(device.device(), 8));
    EXPECT_FALSE(Block::allocate(device.device(), 8));
    EXPECT_TRUE(Block::allocate(device.device(), 8));
  }
  options.faults = {};
  options.faults.lost_event_at = 1;
  {
    Tester t(options);
    auto block = Block::allocate(t.device.device(), 192);
    ASSERT_TRUE(block);
    ASSERT_EQ(t.launch(0, block->data(), block->data() + 64), 0);
    ASSERT_EQ(t.hal.record(t.hal.device, t.streams[0], t.event), 0);
    ASSERT_EQ(t.hal.wait_for(t.hal.device, t.streams[1], t.event), 0);
    ASSERT_EQ(t.launch(1, block->data() + 64, block->data() + 128), 0);
    EXPECT_NE(t.hal.wait(t.hal.device), 0);
    EXPECT_THAT(t.error(), HasSubstr("stream 2 waits for an event that does not happen"));
    EXPECT_NE(t.launch(0, block->data(), block->data()), 0);  // and so on
  }
  options.faults = {};
  options.faults.lost_at = 2;
  {
    Tester t(options);
    auto block = Block::allocate(t.device.device(), 128);
    ASSERT_TRUE(block);
    EXPECT_EQ(t.launch(0, block->data(), block->data() + 64), 0);
    EXPECT_NE(t.launch(0, block->data(), block->data() + 64), 0);
    EXPECT_EQ(t.error(), "the device is lost");
    EXPECT_NE(t.hal.wait(t.hal.device), 0);
  }
}

TEST(virtual_device, LaunchesMustStayInsideOfMemory) {
  Tester t;
  float host = 0;
  EXPECT_NE(t.launch(0, &host, &host), 0);
  EXPECT_THAT(t.error(), HasSubstr("lies outside the device"));
}

TEST(race_check, ClocksGoThroughEvents) {
  RaceCheck check;
  char bytes[64];
  check.advance(0);
  EXPECT_FALSE(check.access(0, bytes, 64, true, "a"));
  const RaceCheck::Clock seen = check.clock(0);
  check.advance(1);
  EXPECT_TRUE(check.access(1, bytes + 63, 1, false, "b"));
  check.join(2, seen);
  check.advance(2);
  EXPECT_FALSE(check.access(2, bytes, 8, true, "c"));
  check.forget();
  check.advance(1);
  EXPECT_FALSE(check.access(1, bytes, 64, true, "d"));
}

}  // namespace
}  // namespace heddle::runtime
