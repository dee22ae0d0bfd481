// The CUDA text itself, without a GPU: the memory-bound rows, small, are compiled by the host's
// compiler over gpu_host.h and run, every thread of a block as a context of its own. Results are
// compared with the reference interpreter. NVRTC (gpu_rows_test) says that the text is CUDA C++;
// this says that it computes what the kernel does.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gpu_check.h"
#include "hlo/text.h"
#include "host_text.h"
#include "pass/random_module.h"
#include "row_kernels.h"
#include "target/target.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

// One shared library for all kernels of a module; null after a failure, which is reported.
void* build(const compiler::GpuKernels& made, const fs::path& folder) {
  const fs::path source = folder / "kernels.cc", library = folder / "kernels.so";
  std::ofstream file(source);
  file << "#include \"" << root_folder() << "/tests/gpu_host.h\"\n";
  for (size_t i = 0; i < made.kernels.size(); ++i) {
    file << fmt::format("namespace kernel{} {{\n{}", i,
                        without_assembly(made.kernels[i].cuda.text));
    for (const emit::cuda::Launch& launch : made.kernels[i].cuda.launches)
      file << fmt::format(
          "extern \"C\" int run_{0}(void* const* b) {{ return host::launch({0}, b, {1}, {2}); }}\n",
          launch.function, launch.blocks, launch.threads);
    file << "}\n";
  }
  file.close();
  const std::string command =
      fmt::format("{} -std=c++20 -w -O0 -ffp-contract=off -shared -fPIC -o {} {} 2> {}",
                  HOST_COMPILER, library.string(), source.string(), (folder / "log").string());
  if (std::system(command.c_str()) != 0) {
    ADD_FAILURE() << read_text(folder / "log").substr(0, 4000) << read_text(source);
    return nullptr;
  }
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << ::dlerror();
  return handle;
}

void expect_equal(compiler::GpuKernels made, bool positive, const std::string& name) {
  // Scratch that the launch asks for is no array of the text.
  std::erase_if(made.kernels, [](const compiler::GpuKernel& kernel) {
    return kernel.cuda.launches[0].dynamic_scratch_bytes() > 0;
  });
  const fs::path folder = fs::temp_directory_path() / fmt::format("heddle-{}-{}", name, getpid());
  fs::create_directories(folder);
  if (void* library = build(made, folder)) {
    for (const compiler::GpuKernel& kernel : made.kernels) {
      const auto run = [&](const std::vector<void*>& memory, const auto&) -> std::string {
        for (const emit::cuda::Launch& launch : kernel.cuda.launches) {
          const auto function = reinterpret_cast<int (*)(void* const*)>(
              ::dlsym(library, ("run_" + launch.function).c_str()));
          if (function == nullptr) return "no function " + launch.function;
          if (function(memory.data()) != 0) return "threads wait for others that never come";
        }
        return {};
      };
      EXPECT_EQ(check_gpu_kernel(kernel, positive, run), "") << kernel.cuda.text;
    }
    ::dlclose(library);
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

class GpuText : public ::testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(GpuText, ComputesWhatTheKernelDoes) {
  const std::string text = read_text(GetParam().second);
  auto module = hlo::parse_module(substituted(text, small_extents(text)));
  ASSERT_TRUE(module) << module.error().message;
  auto made = compiler::gpu_kernels(std::move(*module), *target::find_target("sm_90"), {});
  ASSERT_TRUE(made) << made.error().message;
  expect_equal(std::move(*made), is_positive(text), GetParam().first);
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuText, ::testing::ValuesIn(row_files()),
                         [](const auto& info) { return info.param.first; });

// A row that a whole block shares: its warps wait for one another, which no small row of bench/rows
// asks for.
TEST(GpuBlockText, ComputesWhatTheKernelDoes) {
  auto module = hlo::parse_module(R"(HloModule softmax
larger { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[3,4100] parameter(0)
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  greatest = f32[3] reduce(x, least), dimensions={1}, to_apply=larger
  greatests = f32[3,4100] broadcast(greatest), dimensions={0}
  shifted = f32[3,4100] subtract(x, greatests)
  powers = f32[3,4100] exponential(shifted)
  total = f32[3] reduce(powers, zero), dimensions={1}, to_apply=add
  totals = f32[3,4100] broadcast(total), dimensions={0}
  ROOT y = f32[3,4100] divide(powers, totals)
})");
  ASSERT_TRUE(module) << module.error().message;
  auto made = compiler::gpu_kernels(std::move(*module), *target::find_target("sm_90"), {});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->kernels.size(), 1u);
  EXPECT_NE(made->kernels[0].cuda.text.find("__syncthreads();"), std::string::npos);
  expect_equal(std::move(*made), false, "block");
}

// Types and operators that the rows lack.
TEST(GpuRandomText, ComputesWhatTheKernelDoes) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    auto made = compiler::gpu_kernels(pass::random_module(seed), *target::find_target("sm_90"), {});
    ASSERT_TRUE(made) << made.error().message;
    expect_equal(std::move(*made), false, fmt::format("random{}", seed));
  }
}

}  // namespace
}  // namespace heddle
