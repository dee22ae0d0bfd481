// The conformance suite on the devices of this folder. For `cuda` it is in tests/gpu.
#include "runtime/hal_conformance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/cpu_device.h"
#include "runtime/virtual_device.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ConformanceKernel kernel() {
  std::ifstream file(HEDDLE_SOURCE_DIR "/src/runtime/testdata/kernels.o", std::ios::binary);
  return {std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {}), "scale_p0", 2.5f, 16};
}

TEST(hal_conformance, Cpu) {
  for (const int threads : {1, 3}) {
    Workers workers(threads);
    CpuDevice cpu(workers);
    EXPECT_THAT(HalConformance(&cpu.device().hal(), kernel()).check(), ElementsAre());
  }
}

TEST(hal_conformance, VirtualInEveryOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    VirtualOptions options;
    options.seed = seed;
    VirtualDevice device(options);
    EXPECT_THAT(HalConformance(&device.device().hal(), kernel()).check(), ElementsAre());
    EXPECT_EQ(device.counts().used_bytes, 0);
    EXPECT_EQ(device.counts().races, 0);
  }
}

// The suite must detect errors.
TEST(hal_conformance, FindsWhatIsWrong) {
  VirtualDevice device;
  heddle_hal hal = device.device().hal();
  hal.wait_for = [](void*, heddle_hal_stream*, heddle_hal_event*) { return 0; };
  EXPECT_THAT(HalConformance(&hal, kernel()).check(), testing::Contains(HasSubstr("race")));
  VirtualDevice other;
  heddle_hal deaf = other.device().hal();
  deaf.call_on = [](void*, heddle_hal_stream*, void (*)(void*), void*) { return 0; };
  EXPECT_THAT(HalConformance(&deaf, kernel()).check(), testing::Contains(HasSubstr("every call")));
  hal.is_done = nullptr;
  EXPECT_THAT(HalConformance(&hal, kernel()).check(), testing::Contains(HasSubstr("all or none")));
  hal.version = 7;
  EXPECT_THAT(HalConformance(&hal, kernel()).check(), ElementsAre(HasSubstr("version")));
}

}  // namespace
}  // namespace heddle::runtime
