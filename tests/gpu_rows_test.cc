// The memory-bound rows of bench/rows for GPU targets, with small extents: every kernel runs clean
// in the kernel interpreter and equals the reference interpreter, has CUDA text, and where NVRTC is
// at hand becomes a cubin without spills. What has no kernel yet is listed by row, with its code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "compiler/gpu_kernels.h"
#include "emit/cuda/nvrtc.h"
#include "gpu_check.h"
#include "hlo/text.h"
#include "kernel/interp.h"
#include "kernel/text.h"
#include "row_kernels.h"
#include "target/target.h"

namespace heddle {
namespace {

constexpr int kMostRegisters = 255;

// Rows with a fusion or operator that has no GPU kernel yet: row, then the codes.
const std::map<std::string, std::set<std::string>> kRefused;

class GpuRows : public ::testing::TestWithParam<std::pair<const std::string, std::string>> {};

const auto& opened_nvrtc() {
  static const auto opened = emit::cuda::Nvrtc::open(root_folder() + "/build/venv");
  return opened;
}
std::shared_ptr<emit::cuda::Nvrtc> nvrtc() { return opened_nvrtc() ? *opened_nvrtc() : nullptr; }
std::string nvrtc_absent() { return opened_nvrtc() ? "" : opened_nvrtc().error().message; }

void expect_cubin(const compiler::GpuKernel& kernel, const target::Target& target) {
  auto cubin = nvrtc()->compile(kernel.cuda.text, emit::cuda::architecture(target));
  ASSERT_TRUE(cubin) << cubin.error().message << "\n" << kernel.cuda.text;
  EXPECT_FALSE(cubin->code.empty());
  ASSERT_EQ(cubin->functions.size(), kernel.cuda.launches.size()) << cubin->log;
  for (const emit::cuda::FunctionUse& use : cubin->functions) {
    fmt::print("  {} {}: {} registers, {} bytes spilled, {} shared\n", target.name, use.function,
               use.registers, use.spill_store_bytes, use.shared_bytes);
    EXPECT_GT(use.registers, 0);
    EXPECT_LE(use.registers, kMostRegisters);
    EXPECT_EQ(use.spill_store_bytes, 0) << kernel.cuda.text;
  }
}

TEST_P(GpuRows, KernelsAreProvedAndCompile) {
  const std::string text = read_text(GetParam().second);
  for (const char* name : {"sm_90", "sm_80"}) {
    auto module = hlo::parse_module(substituted(text, small_extents(text)));
    ASSERT_TRUE(module) << module.error().message;
    const target::Target target = *target::find_target(name);
    auto made = compiler::gpu_kernels(std::move(*module), target, {});
    ASSERT_TRUE(made) << made.error().message;
    std::set<std::string> codes;
    for (const auto& refusal : made->refused) {
      codes.insert(refusal.code);
      fmt::print("  refused {}: {}: {}\n", refusal.fusion, refusal.code, refusal.reason);
    }
    const auto listed = kRefused.find(GetParam().first);
    EXPECT_EQ(codes, listed == kRefused.end() ? std::set<std::string>() : listed->second);
    fmt::print("{} {}: {} kernels\n", GetParam().first, name, made->kernels.size());
    for (const compiler::GpuKernel& kernel : made->kernels) {
      kernel::InterpReport report;
      const auto interpret = [&](const auto& memory, const auto&) {
        report = kernel::interpret(kernel.stitched.kernel, memory, {}, 1);
        return report.faults.empty() ? std::string() : report.faults[0];
      };
      EXPECT_EQ(check_gpu_kernel(kernel, is_positive(text), interpret), "")
          << kernel::to_string(kernel.stitched.kernel);
      fmt::print(
          "  {}: {} phases, {} block barriers, {} bank conflicts, sectors {:.2f} of the least\n",
          kernel.fusion, kernel.stitched.kernel.phases.size(), report.barriers,
          report.bank_conflicts(), report.sector_excess());
      if (nvrtc()) expect_cubin(kernel, target);
    }
  }
}

// Longer rows are held in more registers, or are a block's.
TEST_P(GpuRows, FullSizesCompileWithoutSpills) {
  // Without NVRTC there is nothing to compile with; GpuCompiler.IsAtHand is what fails for that,
  // and the kernels are proved by the interpreter all the same.
  if (!nvrtc()) GTEST_SKIP() << nvrtc_absent();
  auto module = hlo::parse_module(read_text(GetParam().second));
  ASSERT_TRUE(module) << module.error().message;
  const target::Target target = *target::find_target("sm_90");
  auto made = compiler::gpu_kernels(std::move(*module), target, {});
  ASSERT_TRUE(made) << made.error().message;
  for (const compiler::GpuKernel& kernel : made->kernels) {
    for (const emit::cuda::Launch& launch : kernel.cuda.launches) {
      EXPECT_LE(launch.scratch_bytes, target.shared_bytes_per_block);
      fmt::print("  {} {}: {} blocks of {} threads\n", GetParam().first, launch.function,
                 launch.blocks, launch.threads);
    }
    expect_cubin(kernel, target);
  }
}

// Elements that all arrays of a kernel have.
int64_t elems_of(const hlo::Module& module) {
  int64_t elems = 0;
  for (const hlo::Instr* instr : module.entry()->parameters()) elems += instr->shape().elems();
  const tensor::Shape& result = module.entry()->root()->shape();
  if (!result.is_tuple()) return elems + result.elems();
  for (const tensor::Shape& element : result.elements()) elems += element.elems();
  return elems;
}

// The kernels that ship, at their own extents: some of the blocks. Where a kernel has phases its
// earlier ones run whole. Long ones by `script/soak blocks` only, which takes minutes.
TEST_P(GpuRows, FullSizesAreProvedBySomeBlocks) {
  constexpr int64_t kMostTasks = 6, kLongest = 1 << 15, kMostElems = 9 << 20;
  const bool all = std::getenv("HEDDLE_ALL_BLOCKS_ROWS") != nullptr;
  const std::string text = read_text(GetParam().second);
  auto module = hlo::parse_module(text);
  ASSERT_TRUE(module) << module.error().message;
  auto made = compiler::gpu_kernels(std::move(*module), *target::find_target("sm_90"), {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->kernels.empty());
  for (const compiler::GpuKernel& kernel : made->kernels) {
    if (!all && elems_of(*kernel.module) > kMostElems) {
      fmt::print("  {}: for script/soak blocks\n", kernel.fusion);
      continue;
    }
    kernel::InterpReport report;
    const auto interpret = [&](const auto& memory, const auto&) {
      report = kernel::interpret_sample(kernel.stitched.kernel, memory, kMostTasks, 1);
      return report.faults.empty() ? std::string() : report.faults[0];
    };
    EXPECT_EQ(check_gpu_kernel(kernel, is_positive(text), interpret, &report.stored, kLongest), "")
        << kernel::to_string(kernel.stitched.kernel);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GpuRows, ::testing::ValuesIn(row_files()),
                         [](const auto& info) { return info.param.first; });

// By kernel of a module: the logarithm of what the cost model thinks a thread holds over what the
// assembler gives it.
std::vector<double> register_errors(const std::string& name, const std::string& text) {
  const target::Target target = *target::find_target("sm_90");
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  auto made = compiler::gpu_kernels(std::move(*module), target, {});
  EXPECT_TRUE(made) << made.error().message;
  std::vector<double> errors;
  for (const compiler::GpuKernel& kernel : made->kernels) {
    auto cubin = nvrtc()->compile(kernel.cuda.text, emit::cuda::architecture(target));
    EXPECT_TRUE(cubin) << cubin.error().message;
    int registers = 0;
    for (const emit::cuda::FunctionUse& use : cubin->functions)
      registers = std::max(registers, use.registers);
    EXPECT_GT(registers, 0) << name;
    EXPECT_GT(kernel.estimated_registers, 0) << name;
    const double ratio = static_cast<double>(kernel.estimated_registers) / registers;
    fmt::print("  {} {}: {} estimated, {} by the assembler, {:.2f}\n", name, kernel.fusion,
               kernel.estimated_registers, registers, ratio);
    errors.push_back(std::log(ratio));
  }
  return errors;
}

// Occupancy and spills follow from the estimate: it may be wrong by what the assembler adds for
// addresses and unrolling, not by the order of magnitude. What a thread holds of its row counts.
TEST(GpuRegisters, EstimatesAreNearTheAssemblers) {
  if (!nvrtc()) GTEST_SKIP() << nvrtc_absent();
  constexpr double kMostEach = 2.2, kMostMean = 1.5, kMostHeld = 1.5;
  double sum = 0, bias = 0;
  int count = 0;
  for (const auto& [row, path] : row_files()) {
    for (const double error : register_errors(row, read_text(path))) {
      EXPECT_LT(std::abs(error), std::log(row == "l6" ? kMostHeld : kMostEach)) << row;
      sum += std::abs(error);
      bias += error;
      ++count;
    }
  }
  ASSERT_GT(count, 20);
  fmt::print("geometric mean of the error {:.2f}, of the ratio {:.2f}\n", std::exp(sum / count),
             std::exp(bias / count));
  EXPECT_LT(std::exp(sum / count), kMostMean);
}

// A thread's list of a top-k.
TEST(GpuRegisters, ListsCount) {
  if (!nvrtc()) GTEST_SKIP() << nvrtc_absent();
  for (const auto& [type, k] : std::vector<std::pair<std::string, int>>{
           {"f32", 2}, {"f32", 5}, {"f32", 8}, {"f32", 16}, {"bf16", 8}, {"f64", 8}}) {
    const std::string text = fmt::format(
        "HloModule top\nENTRY e {{\n  x = {0}[4096,100] parameter(0)\n"
        "  n = {0}[4096,100] negate(x)\n"
        "  ROOT t = ({0}[4096,{1}], s32[4096,{1}]) topk(n), k={1}, largest=true\n}}\n",
        type, k);
    const std::vector<double> errors = register_errors(fmt::format("{} {}", type, k), text);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_LT(std::abs(errors[0]), std::log(1.5)) << type << " " << k;
  }
}

TEST(GpuPending, ListsWhatExists) {
  const auto rows = row_files();
  const std::set<std::string> parts{"hal", "hal-recordings", "hal-streams"};  // gpu_run_test
  std::istringstream lines(read_text(root_folder() + "/tests/gpu/pending"));
  for (std::string line; std::getline(lines, line);)
    if (line[0] != '#') {
      const std::string name = line.substr(0, line.find(' '));
      EXPECT_TRUE(rows.contains(name) || parts.contains(name)) << line;
    }
}

TEST(GpuCompiler, IsAtHand) {
  // script/test installs NVRTC, so that there is never nothing to check there. Only who builds by
  // hand without it, and says so by the variable, leaves the texts uncompiled.
  if (!nvrtc() && std::getenv("HEDDLE_WITHOUT_NVRTC"))
    GTEST_SKIP() << "HEDDLE_WITHOUT_NVRTC is set: " << nvrtc_absent();
  EXPECT_TRUE(nvrtc()) << "script/bootstrap test installs it";
}

}  // namespace
}  // namespace heddle
