// Samples of products: with other numbers of rows, the code is the same.
#include "compiler/tune_sample.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "compiler/fusion_test_util.h"
#include "compiler/with_rows.h"
#include "kernel/text.h"
#include "lower/share_with_twins.h"
#include "schedule/tuning.h"

namespace heddle::compiler {
namespace {

// A batch of sentences whose words are the rows of a packed product, with a bias and the shape that
// a later layer reads.
constexpr const char* kSentences = R"(HloModule m
ENTRY e {
  x = f32[4,50,24] parameter(0)
  rows = f32[200,24] reshape(x)
  w = f32[2,24,48] parameter(1)
  t = f32[24,2,48] transpose(w), dimensions={1,0,2}
  r = f32[24,96] reshape(t)
  d = f32[200,96] dot(rows, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[96] parameter(2)
  bias = f32[200,96] broadcast(b), dimensions={1}
  a = f32[200,96] add(d, bias)
  heads = f32[4,50,3,32] reshape(a)
  ROOT result = (f32[4,50,3,32], f32[200,96]) tuple(heads, a)
})";

TEST(WithRows, FollowsTheRows) {
  const auto result = with_rows(*parsed(kSentences), 56);
  ASSERT_TRUE(result);
  const hlo::Computation& entry = *result->entry();
  EXPECT_EQ(entry.find("x")->shape().extents(), (std::vector<int64_t>{1, 56, 24}));
  EXPECT_EQ(entry.find("d")->shape().extents(), (std::vector<int64_t>{56, 96}));
  EXPECT_EQ(entry.find("bias")->shape().extents(), (std::vector<int64_t>{56, 96}));
  EXPECT_EQ(entry.find("heads")->shape().extents(), (std::vector<int64_t>{1, 56, 3, 32}));
  EXPECT_EQ(entry.find("w")->shape().extents(), (std::vector<int64_t>{2, 24, 48}));
}

TEST(WithRows, RefusesWhatElseCountsThem) {
  const std::string head =
      "HloModule m\nadd { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) "
      "}\n"
      "ENTRY e {\n  x = f32[40,24] parameter(0)\n  w = f32[24,40] parameter(1)\n  d = f32[40,40] "
      "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  ASSERT_TRUE(with_rows(*parsed(head + "ROOT n = f32[40,40] negate(d)\n}"), 16));
  for (const char* tail :
       {"t = f32[40,40] transpose(d), dimensions={1,0} ROOT a = f32[40,40] add(d, t)",  // a square
        "z = f32[] constant(0) ROOT r = f32[40] reduce(d, z), dimensions={0}, to_apply=add",
        "i = f32[40,40] iota(), iota_dimension=0 ROOT a = f32[40,40] add(d, i)",
        "ROOT t = f32[40,40] transpose(d), dimensions={1,0}",  // rows are not the outer dimension
        "r = f32[8,200] reshape(d) ROOT n = f32[8,200] negate(r)"})
    EXPECT_FALSE(with_rows(*parsed(head + tail + "\n}"), 16)) << tail;
}

// Whole tiles of 8 rows, in one block or in blocks of 16.
kernel::Kernel kernel_of(int64_t rows, int64_t block, const std::string& more = "") {
  const std::string text = fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{0},24] parameter(0)
  w = f32[2,24,48] parameter(1)
  t = f32[24,2,48] transpose(w), dimensions={{1,0,2}}
  r = f32[24,96] reshape(t)
  d = f32[{0},96] dot(x, r), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  b = f32[96] parameter(2)
  bias = f32[{0},96] broadcast(b), dimensions={{1}}
  ROOT a = f32[{0},96] add(d, bias)
}})",
                                       rows);
  target::Target target = *target::find_target("icelake");
  target = with_record(target, schedule::gemm_key(rows, 96, 24),
                       fmt::format("gemm 8x3 lanes 16 kc {} ku 4 prefetch 1 rows {}{}",
                                   more.empty() ? 24 : 16, block, more));
  FusionCheck check = check_fusion(*parsed(text), target, 1, 24);
  EXPECT_EQ(check.failure, "") << check.text;
  check.kernel.schedule.clear();
  return check.kernel;
}

std::vector<float> run(const kernel::Kernel& kernel, int64_t rows,
                       const std::vector<int64_t>& dims) {
  std::vector<float> x(static_cast<size_t>(rows * 24)), w(24 * 96), b(96),
      out(static_cast<size_t>(rows * 96));
  std::iota(x.begin(), x.end(), -7);
  std::iota(w.begin(), w.end(), -99);
  std::iota(b.begin(), b.end(), 5);
  auto report = kernel::interpret(kernel, {x.data(), w.data(), b.data(), out.data()}, dims);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0];
  return out;
}

bool open_extents(kernel::Kernel* kernel, const lower::Context& context) {
  return *lower::open_extents(*kernel, context);
}

TEST(TwinKernels, OtherRowsHaveTheSameCode) {
  struct {
    int64_t blocks_a, blocks_b;
    const char* more;
  } const cases[] = {{1, 1, ""}, {5, 7, ""}, {5, 7, " panels 2"}};
  for (const auto& one : cases) {
    auto twin = [&](int64_t blocks, int64_t tiles) {
      return kernel_of(blocks * tiles * 8, tiles * 8, one.more);
    };
    const std::vector<kernel::Kernel> twins{twin(one.blocks_a, 13), twin(one.blocks_b, 29)};
    std::string text;
    for (int64_t tiles : {5, 6, 16}) {
      const int64_t blocks = one.blocks_a == 1 ? 1 : tiles % 4 + 2;
      const kernel::Kernel own = twin(blocks, tiles);
      const auto shared = lower::share_with_twins(twins, own, open_extents);
      ASSERT_TRUE(shared) << tiles << one.more;
      const std::string mine = kernel::to_string(shared->kernel);
      if (text.empty()) text = mine;
      EXPECT_EQ(mine, text);
      const int64_t rows = blocks * tiles * 8;
      EXPECT_EQ(run(shared->kernel, rows, shared->dims.back()), run(own, rows, {}));
    }
  }
}

TEST(TwinKernels, OtherFormsDoNot) {
  const std::vector<kernel::Kernel> twins{kernel_of(104, 104), kernel_of(232, 232)};
  EXPECT_FALSE(
      lower::share_with_twins(twins, kernel_of(100, 100), open_extents));  // tiles of two heights
  EXPECT_FALSE(lower::share_with_twins(twins, kernel_of(104, 52), open_extents));  // several blocks
}

TEST(TuneSample, RowsAreWholeTilesAndTimeIsScaled) {
  const std::string net = R"(HloModule net
ENTRY e {
  x = f32[100,96] parameter(0)
  w0 = f32[96,96] constant({...})
  ROOT d0 = f32[100,96] dot(x, w0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";
  const target::Target target = *target::find_target("icelake");
  auto tasks = find_tune_tasks(parsed(net), target, {.fuse = Fuse::greedy}, 6);
  ASSERT_TRUE(tasks) << tasks.error().message;
  const TuneTask& task = tasks->at(0);
  EXPECT_EQ(task.rows, 100);
  const SampleProgram whole =
      sample_program(task, "gemm 8x3 lanes 16 kc 96 ku 4 prefetch 0 rows 100", target);
  EXPECT_EQ(whole.module->entry()->root()->shape().dim(0), 104);
  ASSERT_EQ(whole.twins.size(), 2u);
  EXPECT_EQ(whole.twins[1]->entry()->root()->shape().dim(0), 29 * 8);
  EXPECT_EQ(whole.target.records->at(schedule::gemm_key(104, 96, 96)),
            "gemm 8x3 lanes 16 kc 96 ku 4 prefetch 0 rows 104");
  EXPECT_NEAR(whole.scale, 100.0 / 104, 0.01);
  // In three blocks: 34 rows are five tiles.
  const SampleProgram blocks =
      sample_program(task, "gemm 8x3 lanes 16 kc 96 ku 4 prefetch 0 rows 34", target);
  EXPECT_EQ(blocks.module->entry()->root()->shape().dim(0), 3 * 40);
  // Few tiles: unchanged.
  const SampleProgram few =
      sample_program(task, "gemm 28x1 lanes 16 kc 96 ku 4 prefetch 0 rows 50", target);
  EXPECT_EQ(few.module->entry()->root()->shape().dim(0), 100);
  EXPECT_TRUE(few.twins.empty());
  EXPECT_EQ(few.scale, 1);
}

}  // namespace
}  // namespace heddle::compiler
