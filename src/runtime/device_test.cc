#include "runtime/device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/cpu_device.h"

namespace heddle::runtime {
namespace {

TEST(device, LargeMemoryIsOnHugePageBorders) {
  Workers workers(1);
  CpuDevice cpu(workers);
  auto block = Block::allocate(cpu.device(), (int64_t{5} << 20) + 3);
  ASSERT_TRUE(block);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data()) % (2 << 20), 0u);
  std::memset(block->data(), 1, static_cast<size_t>(block->bytes()));
  auto small = Block::allocate(cpu.device(), 100);
  ASSERT_TRUE(small);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small->data()) % 64, 0u);
  EXPECT_FALSE(Block::allocate(cpu.device(), int64_t{1} << 60));
}

TEST(device, RefusesIncompleteHals) {
  Workers workers(1);
  CpuDevice cpu(workers);
  heddle_hal hal = cpu.device().hal();
  EXPECT_TRUE(Device::make(&hal));
  hal.begin_run = nullptr;  // optional
  EXPECT_TRUE(Device::make(&hal));
  hal.struct_bytes = offsetof(heddle_hal, begin_run);  // an older header
  EXPECT_TRUE(Device::make(&hal));
  EXPECT_FALSE(heddle_hal_has(&hal, end_run));
  hal.wait = nullptr;
  EXPECT_FALSE(Device::make(&hal));
  hal = cpu.device().hal();
  hal.version = 2;
  auto device = Device::make(&hal);
  ASSERT_FALSE(device);
  EXPECT_NE(device.error().message.find("HAL version 2"), std::string::npos);
}

TEST(device, CopiesLargeAndSmall) {
  Workers workers(3);
  CpuDevice cpu(workers);
  const heddle_hal& hal = cpu.device().hal();
  for (const int64_t bytes : {0, 1, 1000, (1 << 20) - 1, (1 << 20) + 1, 3 << 20}) {
    std::vector<uint8_t> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes) + 1, 7);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 31 >> 3);
    ASSERT_EQ(hal.copy(hal.device, to.data(), from.data(), bytes), 0);
    EXPECT_EQ(to.back(), 7);
    to.pop_back();
    EXPECT_EQ(from, to);
  }
}

}  // namespace
}  // namespace heddle::runtime
