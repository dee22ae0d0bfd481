// The `cuda` device over a stand-in driver (fake_cuda.c): every function of the HAL, and what it
// says where something is missing.
#include "runtime/cuda_device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "program/gpu_code.h"
#include "runtime/hal_conformance.h"

namespace heddle::runtime {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> object(const char* function) {
  return program::encode_gpu_code(
      {"sm_90", {{function, 4, 32, 65536, 2, 1}}, {'f', 'a', 'k', 'e'}});
}

TEST(CudaDriver, MissingLibrariesAreReasons) {
  const auto driver = CudaDriver::open("libcuda_that_is_not_there.so");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("no NVIDIA driver is installed"));
}

TEST(CudaDevice, Conforms) {
  const auto driver = CudaDriver::open(FAKE_CUDA);
  ASSERT_TRUE(driver) << driver.error().message;
  auto opened = CudaDevice::open(*driver);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(
      HalConformance(&(*opened)->device().hal(), {object("twice_p0"), "twice_p0", 2, 32}).check(),
      ::testing::IsEmpty());
}

TEST(CudaDevice, RunsWhatItLoads) {
  const auto driver = CudaDriver::open(FAKE_CUDA);
  ASSERT_TRUE(driver) << driver.error().message;
  const auto live =
      reinterpret_cast<int (*)()>(::dlsym(::dlopen(FAKE_CUDA, RTLD_NOW), "fake_live"));
  {
    auto opened = CudaDevice::open(*driver);
    ASSERT_TRUE(opened) << opened.error().message;
    CudaDevice& cuda = **opened;
    EXPECT_EQ(cuda.info().name, "fake");
    EXPECT_EQ(cuda.info().major, 9);
    const Device& device = cuda.device();
    EXPECT_STREQ(device.hal().name, "cuda:0");
    auto code = Code::load(device, object("twice_p0"));
    ASSERT_TRUE(code) << code.error().message;
    const auto function = code->find("twice_p0");
    ASSERT_TRUE(function) << function.error().message;
    EXPECT_FALSE(code->find("twice_p1"));
    std::vector<float> x(100), y(100);
    std::iota(x.begin(), x.end(), 0.0f);
    auto from = Block::allocate(device, 400), to = Block::allocate(device, 400);
    ASSERT_TRUE(from && to);
    const heddle_hal& hal = device.hal();
    ASSERT_TRUE(cuda.begin_timing());
    ASSERT_EQ(hal.copy(hal.device, from->data(), x.data(), 400), 0);
    void* buffers[] = {from->data(), to->data()};
    const int64_t dims[] = {100};
    heddle_hal_launch launch{*function, buffers, dims, 4, 0, nullptr, 0};
    ASSERT_EQ(hal.launch(hal.device, &launch), 0) << hal.last_error(hal.device);
    ASSERT_EQ(hal.copy(hal.device, y.data(), to->data(), 400), 0);
    ASSERT_EQ(hal.wait(hal.device), 0);
    const auto ms = cuda.end_timing_ms();
    ASSERT_TRUE(ms);
    EXPECT_EQ(*ms, 0.5);
    for (size_t i = 0; i < 100; ++i) EXPECT_EQ(y[i], 2 * x[i]);
  }
  EXPECT_EQ(live(), 0);  // everything was given back
}

TEST(CudaDevice, SaysWhatIsWrong) {
  const auto driver = CudaDriver::open(FAKE_CUDA);
  ASSERT_TRUE(driver);
  const auto second = CudaDevice::open(*driver, 1);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("cuda:1: there is none; this machine has 1"));
  auto opened = CudaDevice::open(*driver);
  ASSERT_TRUE(opened);
  const Device& device = (*opened)->device();
  const auto big = Block::allocate(device, int64_t{1} << 40);
  ASSERT_FALSE(big);
  EXPECT_THAT(big.error().message, HasSubstr("out of memory"));
  const auto code = Code::load(device, object("other_p0"));
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("other_p0: named symbol not found"));
  const std::vector<uint8_t> nonsense = {1, 2, 3};
  EXPECT_FALSE(Code::load(device, nonsense));
}

}  // namespace
}  // namespace heddle::runtime
