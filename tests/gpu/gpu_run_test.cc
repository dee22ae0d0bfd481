// Every kernel of the memory-bound rows, with small extents, on the GPU of this machine: compiled
// by NVRTC, launched through the HAL, compared with the reference interpreter. Skipped with a
// reason where there is no GPU; `pending` lists the rows that no GPU has confirmed yet.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "../gpu_check.h"
#include "../row_kernels.h"
#include "emit/cuda/nvrtc.h"
#include "hlo/text.h"
#include "program/gpu_code.h"
#include "runtime/cuda_device.h"
#include "runtime/hal_conformance.h"
#include "runtime/stream_manager.h"
#include "target/target.h"

namespace heddle {
namespace {

struct Gpu {
  std::unique_ptr<runtime::CudaDevice> device;
  std::shared_ptr<emit::cuda::Nvrtc> nvrtc;
  target::Target target;
  std::string reason;  // why there is none
};

// The newest shipped target that the device runs.
Gpu open_gpu() {
  Gpu gpu;
  auto driver = runtime::CudaDriver::open();
  if (!driver) return gpu.reason = driver.error().message, std::move(gpu);
  auto device = runtime::CudaDevice::open(*driver);
  if (!device) return gpu.reason = device.error().message, std::move(gpu);
  auto nvrtc = emit::cuda::Nvrtc::open(root_folder() + "/build/venv");
  if (!nvrtc) return gpu.reason = nvrtc.error().message, std::move(gpu);
  const int capability = (*device)->info().major * 10 + (*device)->info().minor;
  if (capability < 80) {
    gpu.reason = fmt::format("{} is sm_{}, older than sm_80", (*device)->info().name, capability);
    return gpu;
  }
  gpu.device = std::move(*device);
  gpu.nvrtc = *nvrtc;
  // A cubin runs on its own major version only.
  gpu.target = *target::find_target(capability >= 90 ? "sm_90" : "sm_80");
  return gpu;
}

std::string launch_all(const Gpu& gpu, const compiler::GpuKernel& kernel,
                       const std::vector<void*>& memory, const std::vector<int64_t>& bytes) {
  auto cubin = gpu.nvrtc->compile(kernel.cuda.text, emit::cuda::architecture(gpu.target));
  if (!cubin) return cubin.error().message;
  program::GpuCode code{gpu.target.name, {}, cubin->code};
  for (const emit::cuda::Launch& one : kernel.cuda.launches)
    code.functions.push_back({one.function, one.blocks, one.threads, one.dynamic_scratch_bytes(),
                              static_cast<int>(memory.size()), 0});
  const runtime::Device& device = gpu.device->device();
  const std::vector<uint8_t> object = program::encode_gpu_code(code);
  auto loaded = runtime::Code::load(device, object);
  if (!loaded) return loaded.error().message;
  const heddle_hal& hal = device.hal();
  std::vector<runtime::Block> blocks;
  std::vector<void*> addresses;
  for (size_t i = 0; i < memory.size(); ++i) {
    auto block = runtime::Block::allocate(device, std::max<int64_t>(1, bytes[i]));
    if (!block) return block.error().message;
    if (hal.copy(hal.device, block->data(), memory[i], bytes[i])) return hal.last_error(hal.device);
    addresses.push_back(block->data());
    blocks.push_back(std::move(*block));
  }
  for (const program::GpuFunction& one : code.functions) {
    auto function = loaded->find(one.name.c_str());
    if (!function) return function.error().message;
    const heddle_hal_launch launch{*function, addresses.data(), nullptr, one.blocks, 0, nullptr, 0};
    if (hal.launch(hal.device, &launch)) return hal.last_error(hal.device);
  }
  for (size_t i = 0; i < memory.size(); ++i)
    if (hal.copy(hal.device, memory[i], addresses[i], bytes[i])) return hal.last_error(hal.device);
  return hal.wait(hal.device) ? hal.last_error(hal.device) : "";
}

class GpuRun : public ::testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(GpuRun, EqualsTheInterpreter) {
  static const Gpu gpu = open_gpu();
  // No driver or no GPU on this machine: tests/gpu/pending lists what waits for one.
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const std::string text = read_text(GetParam().second);
  auto module = hlo::parse_module(substituted(text, small_extents(text)));
  ASSERT_TRUE(module) << module.error().message;
  auto made = compiler::gpu_kernels(std::move(*module), gpu.target, {});
  ASSERT_TRUE(made) << made.error().message;
  for (const compiler::GpuKernel& kernel : made->kernels) {
    const std::string wrong =
        check_gpu_kernel(kernel, is_positive(text), [&](const auto& memory, const auto& bytes) {
          return launch_all(gpu, kernel, memory, bytes);
        });
    EXPECT_EQ(wrong, "") << kernel.cuda.text;
    if (wrong.empty())
      fmt::print("confirmed {} {} on {}\n", GetParam().first, kernel.fusion,
                 gpu.device->info().name);
  }
}

// All that the HAL promises, recordings of launches included.
TEST(GpuRunHal, Conforms) {
  const Gpu gpu = open_gpu();
  // No driver or no GPU on this machine: tests/gpu/pending lists what waits for one.
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  auto cubin = gpu.nvrtc->compile(
      R"(extern "C" __global__ void twice_p0(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 32LL + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
)",
      emit::cuda::architecture(gpu.target));
  ASSERT_TRUE(cubin) << cubin.error().message;
  const program::GpuCode code{gpu.target.name, {{"twice_p0", 1, 32, 0, 2, 1}}, cubin->code};
  const heddle_hal& hal = gpu.device->device().hal();
  runtime::HalConformance all(&hal, {program::encode_gpu_code(code), "twice_p0", 2, 32});
  const std::vector<std::string> wrong = all.check();
  EXPECT_THAT(wrong, ::testing::IsEmpty());
  if (!wrong.empty()) return;
  fmt::print("confirmed hal on {}\n", gpu.device->info().name);
  if (gpu.device->device().has_recordings())
    fmt::print("confirmed hal-recordings on {}\n", gpu.device->info().name);
}

// Streams, events and calls back of the HAL, with copies.
TEST(GpuRunStreams, CopiesAreOrderedByEventsAndCallsCome) {
  const Gpu gpu = open_gpu();
  // No driver or no GPU on this machine: tests/gpu/pending lists what waits for one.
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const runtime::Device& device = gpu.device->device();
  const heddle_hal& hal = device.hal();
  constexpr int64_t kElems = int64_t{1} << 22, kBytes = 4 * kElems;
  auto a = runtime::Block::allocate(device, kBytes), b = runtime::Block::allocate(device, kBytes);
  ASSERT_TRUE(a && b);
  const runtime::StreamWish wishes[] = {{runtime::StreamKind::host_to_device, 1, 1},
                                        {runtime::StreamKind::device_to_host, 0, 1}};
  const auto streams = device.streams()->take(wishes);
  ASSERT_TRUE(streams) << streams.error().message;
  const auto taken = device.events()->take();
  ASSERT_TRUE(taken) << taken.error().message;
  std::vector<float> x(kElems), y(kElems);
  std::atomic<int> calls{0};
  for (int i = 0; i < 20; ++i) {
    std::fill(x.begin(), x.end(), static_cast<float>(i));
    ASSERT_EQ(hal.copy_on(hal.device, (*streams)[0], a->data(), x.data(), kBytes), 0);
    ASSERT_EQ(hal.copy_on(hal.device, (*streams)[0], b->data(), a->data(), kBytes), 0);
    ASSERT_TRUE(device.events()->record(*taken, (*streams)[0]));
    ASSERT_TRUE(device.events()->call(
        *taken, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls));
    ASSERT_TRUE(device.events()->wait(*taken, (*streams)[1]));
    ASSERT_EQ(hal.copy_on(hal.device, (*streams)[1], y.data(), b->data(), kBytes), 0);
    ASSERT_TRUE(device.streams()->sync((*streams)[1]));
    ASSERT_EQ(y, x) << i;
  }
  ASSERT_TRUE(device.streams()->sync_all());
  EXPECT_EQ(calls, 20);
  device.events()->give_back(*taken);
  device.streams()->give_back(*streams, wishes);
  fmt::print("confirmed hal-streams on {}\n", gpu.device->info().name);
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuRun, ::testing::ValuesIn(row_files()),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace heddle
