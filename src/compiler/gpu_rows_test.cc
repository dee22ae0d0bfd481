// Compositions on a GPU target: the space through which values pass, checked by the kernel
// interpreter (bounds, unwritten reads, races between tasks and threads).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "emit/cuda/cuda_text.h"
#include "hlo/text.h"
#include "kernel/text.h"

namespace heddle::compiler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FusionCheck check(const std::string& text, int64_t reduction_length = 64) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  const target::Target target = *target::find_target("sm_90");
  FusionCheck result = check_fusion(**module, target, 5, reduction_length);
  EXPECT_EQ(result.failure, "") << result.text;
  return result;
}

std::string softmax(int rows, int columns) {
  return fmt::format(R"(HloModule softmax
larger {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }}
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY main {{
  x = f32[{0},{1}] parameter(0)
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  greatest = f32[{0}] reduce(x, least), dimensions={{1}}, to_apply=larger
  greatests = f32[{0},{1}] broadcast(greatest), dimensions={{0}}
  shifted = f32[{0},{1}] subtract(x, greatests)
  powers = f32[{0},{1}] exponential(shifted)
  total = f32[{0}] reduce(powers, zero), dimensions={{1}}, to_apply=add
  totals = f32[{0},{1}] broadcast(total), dimensions={{0}}
  ROOT y = f32[{0},{1}] divide(powers, totals)
}})",
                     rows, columns);
}

// Removes the n-th barrier, from 0; n is reduced by the number of barriers before it.
bool remove_barrier(std::vector<kernel::Stmt>* body, int* n) {
  for (size_t i = 0; i < body->size(); ++i) {
    kernel::Stmt& stmt = (*body)[i];
    if (stmt.kind == kernel::StmtKind::barrier && (*n)-- == 0) {
      body->erase(body->begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    if (remove_barrier(&stmt.body, n) || remove_barrier(&stmt.otherwise, n)) return true;
  }
  return false;
}

// The number of barriers, and of those without which threads race (one removed at a time).
std::pair<int, int> needed_barriers(const kernel::Kernel& kernel) {
  std::vector<std::vector<char>> buffers;
  std::vector<void*> memory;
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.space != kernel::Space::global) continue;
    buffers.emplace_back(static_cast<size_t>(buffer.extents[0] * tensor::type_bytes(buffer.type)));
    memory.push_back(buffers.back().data());
  }
  int barriers = 0, needed = 0;
  for (;; ++barriers) {
    kernel::Kernel broken = kernel;
    int n = barriers;
    if (!remove_barrier(&broken.phases[0].groups[0].body, &n)) return {barriers, needed};
    needed += !kernel::interpret(broken, memory).faults.empty();
  }
}

// Warp composition (F5): shuffles, no barrier, the row in registers. With enough rows for all
// multiprocessors: of few rows each has a block (F12).
TEST(GpuRows, AShortRowIsASubgroups) {
  const FusionCheck made = check(softmax(512, 64), 64);
  EXPECT_EQ(made.report.barriers + made.report.subgroup_barriers, 0) << made.text;
  EXPECT_EQ(made.kernel.scratch_bytes, 0) << made.text;
  EXPECT_THAT(made.text, HasSubstr("_held: f32[2] reg lanes 32"));
  EXPECT_THAT(made.text, HasSubstr("shuffle_xor"));
  EXPECT_EQ(made.kernel.phases[0].groups[0].block_threads, 128);
  EXPECT_EQ(made.report.sector_excess(), 1);
}

TEST(GpuRows, ATailOfLanesIsMasked) { check(softmax(5, 77), 77); }

TEST(GpuRows, AShortRowOfFewIsABlocks) {
  const FusionCheck made = check(softmax(13, 768), 768);
  EXPECT_EQ(made.kernel.phases[0].groups[0].block_threads, 192);  // an access of 16 bytes each
  EXPECT_THAT(made.text, HasSubstr("_held: f32[4] reg lanes 192"));
  EXPECT_EQ(made.report.sector_excess(), 1);
}

// Block composition (F6): partial results are combined through scratch, after a barrier.
TEST(GpuRows, ALongRowIsABlocks) {
  const FusionCheck made = check(softmax(3, 4100), 4100);
  EXPECT_GT(made.report.barriers, 0);
  EXPECT_EQ(made.kernel.phases[0].groups[0].block_threads, 544);  // two accesses each
  EXPECT_THAT(made.text, HasSubstr("part"));
  const auto [barriers, needed] = needed_barriers(made.kernel);
  EXPECT_EQ(barriers, 2) << made.text;
  EXPECT_EQ(needed, barriers) << made.text;
}

TEST(GpuRows, AMapIsAnElementAThread) {
  const FusionCheck made = check(R"(HloModule map
ENTRY main {
  x = f32[50,4096] parameter(0)
  y = f32[50,4096] parameter(1)
  p = f32[50,4096] multiply(x, y)
  ROOT z = f32[50,4096] tanh(p)
})");
  EXPECT_EQ(made.report.barriers + made.report.subgroup_barriers, 0);
  EXPECT_EQ(made.report.sector_excess(), 1);
  EXPECT_EQ(made.report.buffers[0].max_loads_per_elem, 1);
}

// Both sides are coalesced and there are no bank conflicts: a padded tile in scratch.
TEST(GpuRows, ATransposeGoesThroughScratch) {
  const FusionCheck made = check(R"(HloModule turn
ENTRY main {
  x = f32[3,100,70] parameter(0)
  t = f32[3,70,100] transpose(x), dimensions={0,2,1}
  ROOT y = f32[3,70,100] negate(t)
})");
  EXPECT_EQ(made.report.bank_conflicts(), 0);
  EXPECT_THAT(made.text, HasSubstr("tile: f32["));
  EXPECT_LT(made.report.sector_excess(), 1.6);  // rows of 70 and 100 do not begin on sectors
  EXPECT_THAT(made.text, Not(HasSubstr("shuffle_xor")));
  const auto [barriers, needed] = needed_barriers(made.kernel);
  EXPECT_GT(barriers, 1);
  EXPECT_EQ(needed, barriers) << made.text;
}

TEST(GpuRows, AColumnReductionHasLanesAlongColumns) {
  const FusionCheck made = check(R"(HloModule columns
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[300,80] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[80] reduce(x, zero), dimensions={0}, to_apply=add
})",
                                 300);
  // Partial results are combined with the lanes along them; most reads are of x.
  const kernel::BufferCounts& x = made.report.buffers[0];
  EXPECT_LT(static_cast<double>(x.sectors), 1.1 * static_cast<double>(x.least_sectors));
}

// Eight images of rows, with a statistic per column that is a sum: recomputing it per strip of rows
// is cheap, per row it is not.
TEST(GpuRows, FewTasksAreCutWhereLittleIsComputedTwice) {
  const FusionCheck made = check(R"(HloModule scaled
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[8,375,64] parameter(0)
  all = f32[64,5] parameter(1)
  zero = f32[] constant(0)
  squares = f32[64] reduce(all, zero), dimensions={1}, to_apply=add
  a = f32[64] abs(squares)
  one = f32[] constant(1)
  ones = f32[64] broadcast(one), dimensions={}
  some = f32[64] add(a, ones)
  scale = f32[64] rsqrt(some)
  scales = f32[8,375,64] broadcast(scale), dimensions={2}
  ROOT y = f32[8,375,64] multiply(x, scales)
})");
  const int64_t blocks = kernel::task_count(made.kernel, made.kernel.phases[0], {});
  EXPECT_GT(blocks, 8) << made.text;
  EXPECT_LT(blocks, 8 * 375 / 4) << made.text;
}

TEST(GpuRows, TextIsReadableCuda) {
  const FusionCheck made = check(softmax(13, 96), 96);
  const auto text = emit::cuda::to_cuda(made.kernel, *target::find_target("sm_90"));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(text->text, HasSubstr("extern \"C\" __global__ void __launch_bounds__(128)"));
  EXPECT_THAT(text->text, HasSubstr("test_p0(const float* in0, float* out0)"));
  EXPECT_THAT(text->text, HasSubstr("__shfl_xor_sync(0xffffffffu, "));
  ASSERT_EQ(text->launches.size(), 1);
  EXPECT_EQ(text->launches[0].blocks, 13);
  EXPECT_EQ(text->launches[0].threads, 128);
}

}  // namespace
}  // namespace heddle::compiler
