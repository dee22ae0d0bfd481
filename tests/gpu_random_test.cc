// Random modules for a GPU target: every kernel that is made runs clean in the kernel interpreter
// and equals the reference interpreter; those of the first seeds are compiled by NVRTC too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "compiler/gpu_kernels.h"
#include "emit/cuda/nvrtc.h"
#include "gpu_check.h"
#include "hlo/text.h"
#include "kernel/interp.h"
#include "kernel/text.h"
#include "pass/random_module.h"
#include "root_folder.h"
#include "target/target.h"

namespace heddle {
namespace {

constexpr uint64_t kSeeds = 150, kThoroughSeeds = 2500, kCompiled = 6;

TEST(GpuRandom, KernelsAreProved) {
  const target::Target target = *target::find_target("sm_90");
  std::map<std::string, int> refused;
  int proved = 0;
  const uint64_t seeds = std::getenv("HEDDLE_THOROUGH") ? kThoroughSeeds : kSeeds;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    pass::RandomModuleOptions shape;
    shape.steps = 8 + static_cast<int>(seed % 12);
    shape.contractions = seed % 3 == 0;
    std::unique_ptr<hlo::Module> module = pass::random_module(seed, shape);
    const std::string text = hlo::to_string(*module);
    auto made = compiler::gpu_kernels(std::move(module), target, {});
    ASSERT_TRUE(made) << made.error().message;
    for (const auto& refusal : made->refused) {
      ++refused[refusal.code];
      if (refusal.code != "no-kernel") fmt::print("{}: {}\n", refusal.code, refusal.reason);
    }
    for (const compiler::GpuKernel& kernel : made->kernels) {
      const auto interpret = [&](const auto& memory, const auto&) {
        const auto report = kernel::interpret(kernel.stitched.kernel, memory, {}, seed);
        return report.faults.empty() ? std::string() : report.faults[0];
      };
      ASSERT_EQ(check_gpu_kernel(kernel, false, interpret), "")
          << "seed " << seed << " " << kernel.fusion << "\n"
          << hlo::to_string(*kernel.module) << kernel::to_string(kernel.stitched.kernel);
      ++proved;
    }
  }
  for (const auto& [code, count] : refused) fmt::print("refused {}: {}\n", code, count);
  fmt::print("{} kernels proved\n", proved);
  EXPECT_GT(proved, 300);
}

TEST(GpuRandom, TextsCompile) {
  const auto nvrtc = emit::cuda::Nvrtc::open(root_folder() + "/build/venv");
  // Not installed: gpu_rows_test fails for it, unless HEDDLE_WITHOUT_NVRTC says that it is meant.
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  const target::Target target = *target::find_target("sm_80");
  for (uint64_t seed = 1; seed <= kCompiled; ++seed) {
    auto made = compiler::gpu_kernels(pass::random_module(seed), target, {});
    ASSERT_TRUE(made) << made.error().message;
    std::vector<const emit::cuda::CudaText*> kernels;
    for (const compiler::GpuKernel& kernel : made->kernels) kernels.push_back(&kernel.cuda);
    const std::string text = emit::cuda::join_kernels(kernels);
    const auto cubin = (*nvrtc)->compile(text, "sm_80");
    ASSERT_TRUE(cubin) << cubin.error().message << text;
    EXPECT_GE(cubin->functions.size(), kernels.size());
    for (const auto& use : cubin->functions) EXPECT_EQ(use.spill_store_bytes, 0) << use.function;
  }
}

}  // namespace
}  // namespace heddle
