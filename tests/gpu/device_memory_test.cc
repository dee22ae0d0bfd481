// Inputs and outputs in a GPU's memory through the C interface, over the stand-in GPU: results, and
// how many bytes cross the link.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "api/heddle.h"
#include "host_gpu.h"
#include "runtime/cuda_driver.h"

namespace heddle {
namespace {

using runtime::CudaDriver;
using ::testing::HasSubstr;

const CudaDriver& driver() {
  static const auto opened = [] {
    ::setenv("HEDDLE_CUDA_DRIVER", HOST_GPU, 1);
    ::setenv("HEDDLE_NVRTC", HOST_GPU, 1);
    return *CudaDriver::open();
  }();
  return *opened;
}

void ok(heddle_status* status) {
  EXPECT_EQ(status, nullptr) << heddle_status_message(status);
  heddle_status_free(status);
}

// Memory that a caller has on the GPU.
class OnGpu {
 public:
  explicit OnGpu(const std::vector<float>& values) : bytes_(values.size() * 4) {
    EXPECT_EQ(driver().allocate(&at_, bytes_), 0);
    EXPECT_EQ(driver().copy_async(at_, address(values.data()), bytes_, nullptr), 0);
  }
  ~OnGpu() { driver().release(at_); }
  OnGpu(const OnGpu&) = delete;
  void* data() const { return reinterpret_cast<void*>(at_); }
  std::vector<float> values() const {
    std::vector<float> result(bytes_ / 4);
    EXPECT_EQ(driver().copy_async(address(result.data()), at_, bytes_, nullptr), 0);
    return result;
  }

 private:
  static CudaDriver::Address address(const void* p) {
    return reinterpret_cast<CudaDriver::Address>(p);
  }
  CudaDriver::Address at_ = 0;
  size_t bytes_;
};

class DeviceMemory : public ::testing::Test {
 protected:
  DeviceMemory() { driver(); }
  ~DeviceMemory() override {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
  }
  void compile(const char* text, const char* device = "cuda") {
    heddle_compile_options options{};
    options.struct_size = sizeof options;
    options.device = device;
    options.cache = "off";
    ok(heddle_model_parse("m", text, std::strlen(text), nullptr, &model_));
    ASSERT_NE(model_, nullptr);
    ok(heddle_compile(model_, &options, &program_));
    ASSERT_NE(program_, nullptr);
    ok(heddle_context_create(program_, &context_));
    ASSERT_NE(context_, nullptr);
  }
  // Bytes over the link in one run.
  int64_t crossed_by_run() {
    const int64_t before = host_gpu_crossed();
    ok(heddle_context_run(context_));
    return host_gpu_crossed() - before;
  }

  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  heddle_context* context_ = nullptr;
};

std::vector<float> counted(size_t count) {
  std::vector<float> result(count);
  std::iota(result.begin(), result.end(), 1.0f);
  return result;
}

constexpr const char* kNorm = R"(HloModule norm
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[6,40] parameter(0)
  w = f32[40] parameter(1)
  zero = f32[] constant(0)
  s = f32[6] reduce(x, zero), dimensions={1}, to_apply=sum
  sb = f32[6,40] broadcast(s), dimensions={0}
  n = f32[6,40] divide(x, sb)
  wb = f32[6,40] broadcast(w), dimensions={1}
  ROOT y = f32[6,40] multiply(n, wb)
})";

TEST_F(DeviceMemory, NothingCrossesTheLink) {
  ASSERT_NO_FATAL_FAILURE(compile(kNorm));
  const std::vector<float> x = counted(240), w = counted(40);
  std::vector<float> y(240);
  ok(heddle_context_bind_input(context_, 0, x.data()));
  ok(heddle_context_bind_input(context_, 1, w.data()));
  ok(heddle_context_bind_output(context_, 0, y.data()));
  EXPECT_EQ(crossed_by_run(), 4 * (240 + 40 + 240));

  const OnGpu dx(x), dw(w), dy(std::vector<float>(240, NAN));
  ok(heddle_context_bind_device_input(context_, 0, dx.data()));
  ok(heddle_context_bind_device_input(context_, 1, dw.data()));
  ok(heddle_context_bind_device_output(context_, 0, dy.data()));
  EXPECT_EQ(crossed_by_run(), 0);
  EXPECT_EQ(dy.values(), y);
  EXPECT_EQ(dx.values(), x);

  // One of each, and back again.
  std::vector<float> z(240);
  ok(heddle_context_bind_input(context_, 1, w.data()));
  ok(heddle_context_bind_output(context_, 0, z.data()));
  EXPECT_EQ(crossed_by_run(), 4 * (40 + 240));
  EXPECT_EQ(z, y);
}

// From the third run on a run is one call of the driver; other arrays begin anew.
TEST_F(DeviceMemory, RunsOfTheSameArraysAreReplayed) {
  ASSERT_NO_FATAL_FAILURE(compile(kNorm));
  std::vector<float> x = counted(240);
  const OnGpu dx(x), dw(counted(40)), dy(std::vector<float>(240)), dz(std::vector<float>(240));
  ok(heddle_context_bind_device_input(context_, 0, dx.data()));
  ok(heddle_context_bind_device_input(context_, 1, dw.data()));
  const std::vector<std::pair<int, int>> want = {{1, 0}, {1, 1}, {0, 1}, {0, 1}};
  for (const OnGpu* out : {&dy, &dz}) {
    ok(heddle_context_bind_device_output(context_, 0, out->data()));
    for (const auto& [calls, replays] : want) {
      const int64_t calls_before = host_gpu_calls(), replays_before = host_gpu_replays();
      EXPECT_EQ(crossed_by_run(), 0);
      EXPECT_EQ(host_gpu_calls() - calls_before, calls);
      EXPECT_EQ(host_gpu_replays() - replays_before, replays);
    }
  }
  EXPECT_EQ(dy.values(), dz.values());
  EXPECT_FLOAT_EQ(dy.values()[1], x[1] / 820 * 2);  // a row's sum, and the weight
}

// The host sorts, and hands an input and a constant on.
TEST_F(DeviceMemory, TheHostGetsCopiesOfWhatItNeeds) {
  ASSERT_NO_FATAL_FAILURE(compile(R"(HloModule sorted
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
ENTRY main {
  x = f32[7,40] parameter(0)
  s = f32[7,40] sort(x), dimensions={1}, to_apply=less
  e = f32[7,40] negate(x)
  c = f32[3] constant({1,2,3})
  ROOT t = (f32[7,40], f32[7,40], f32[3], f32[7,40]) tuple(s, e, c, x)
})"));
  std::vector<float> x(280);
  for (size_t i = 0; i < 280; ++i) x[i] = static_cast<float>((i * 37) % 101);
  const OnGpu dx(x), sorted(std::vector<float>(280)), negated(std::vector<float>(280)),
      constant(std::vector<float>(3)), same(std::vector<float>(280));
  ok(heddle_context_bind_device_input(context_, 0, dx.data()));
  const OnGpu* outputs[] = {&sorted, &negated, &constant, &same};
  for (int64_t i = 0; i < 4; ++i)
    ok(heddle_context_bind_device_output(context_, i, outputs[i]->data()));
  for (int run = 0; run < 2; ++run) EXPECT_GT(crossed_by_run(), 0);
  std::vector<float> want = x;
  for (auto row = want.begin(); row != want.end(); row += 40) std::sort(row, row + 40);
  EXPECT_EQ(sorted.values(), want);
  for (size_t i = 0; i < 280; ++i) want[i] = -x[i];
  EXPECT_EQ(negated.values(), want);
  EXPECT_EQ(constant.values(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(same.values(), x);
}

// An output that aliases its input is written where the input lies.
TEST_F(DeviceMemory, DonatedInputsStayOnTheDevice) {
  ASSERT_NO_FATAL_FAILURE(compile(R"(HloModule step, input_output_alias={ {}: (0, {}) }
ENTRY main {
  x = f32[64] parameter(0)
  g = f32[64] parameter(1)
  ROOT y = f32[64] add(x, g)
})"));
  const OnGpu state(counted(64)), gradient(std::vector<float>(64, 1.0f));
  ok(heddle_context_bind_device_input(context_, 0, state.data()));
  ok(heddle_context_bind_device_input(context_, 1, gradient.data()));
  ok(heddle_context_bind_device_output(context_, 0, state.data()));
  for (int run = 0; run < 3; ++run) EXPECT_EQ(crossed_by_run(), 0);
  const std::vector<float> values = state.values();
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], static_cast<float>(i + 4));
}

TEST_F(DeviceMemory, WrongMemoryIsAUserError) {
  ASSERT_NO_FATAL_FAILURE(compile(kNorm));
  const OnGpu x(counted(240));
  heddle_status* status =
      heddle_context_bind_device_input(context_, 0, static_cast<const char*>(x.data()) + 4);
  EXPECT_EQ(heddle_status_kind(status), HEDDLE_USER_ERROR);
  EXPECT_THAT(heddle_status_message(status), HasSubstr("must be 64-byte aligned"));
  heddle_status_free(status);
}

TEST_F(DeviceMemory, OtherDevicesHaveNone) {
  ASSERT_NO_FATAL_FAILURE(compile(kNorm, "interp"));
  const OnGpu x(counted(240));
  for (const bool input : {true, false}) {
    heddle_status* status = input ? heddle_context_bind_device_input(context_, 0, x.data())
                                  : heddle_context_bind_device_output(context_, 0, x.data());
    EXPECT_EQ(heddle_status_kind(status), HEDDLE_USER_ERROR);
    EXPECT_THAT(heddle_status_message(status), HasSubstr("contexts of device cuda"));
    heddle_status_free(status);
  }
}

}  // namespace
}  // namespace heddle
