// One program, many threads: concurrent contexts give the same bits as sequential runs.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "api/session.h"

namespace heddle::api {
namespace {

constexpr int kThreads = 16, kRuns = 25;

// Products split over the workers, a loop, a host call (the sort), weights that are packed at the
// first run.
constexpr const char* kText = R"(HloModule several
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
go { s = (s32[], f32[96,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[96,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[96,96] get-tuple-element(s), index=1
  y = f32[96,96] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[96,96] tanh(y)
  ROOT r = (s32[], f32[96,96]) tuple(j, z) }
ENTRY main {
  x = f32[96,96] parameter(0)
  ids = s32[96,96] iota(), iota_dimension=1
  w = f32[96,96] convert(ids)
  a = f32[96,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = s32[] constant(0)
  start = (s32[], f32[96,96]) tuple(zero, a)
  loop = (s32[], f32[96,96]) while(start), condition=go, body=step
  b = f32[96,96] get-tuple-element(loop), index=1
  none = f32[] constant(0)
  rows = f32[96] reduce(b, none), dimensions={1}, to_apply=sum
  sorted = f32[96] sort(rows), dimensions={0}, to_apply=less
  ROOT out = (f32[96,96], f32[96]) tuple(b, sorted)
})";

struct Arrays {
  std::vector<float> x = std::vector<float>(96 * 96), y = x, sorted = std::vector<float>(96);

  explicit Arrays(int seed) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 101) % 199) * 1e-4f;
  }
  Status bind(Context& context) {
    HEDDLE_RETURN_IF_ERROR(context.bind_input(0, x.data()));
    HEDDLE_RETURN_IF_ERROR(context.bind_output(0, y.data()));
    return context.bind_output(1, sorted.data());
  }
};

class Threads : public testing::TestWithParam<const char*> {};

TEST_P(Threads, SixteenGiveTheBitsOfOne) {
  auto model = Model::parse("several", kText, {});
  ASSERT_TRUE(model) << model.error().message;
  CompileOptions options;
  options.threads = 3;
  options.memory = GetParam();
  options.cache = "off";
  auto fresh = [&] {
    auto program = Program::compile(**model, options);
    EXPECT_TRUE(program) << program.error().message;
    return *program;
  };
  std::vector<Arrays> want;
  {
    const auto program = fresh();
    auto context = program->make_context();
    ASSERT_TRUE(context);
    for (int t = 0; t < kThreads; ++t) {
      want.emplace_back(t);
      ASSERT_TRUE(want.back().bind(**context));
      ASSERT_TRUE((*context)->run());
    }
  }
  // The first runs of another program, which prepare its weights, start at the same time.
  const auto program = fresh();
  std::atomic<int> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      auto context = program->make_context();
      Arrays mine(t);
      if (!context || !mine.bind(**context)) {
        ++failed;
        return;
      }
      for (int i = 0; i < kRuns; ++i) {
        failed += !(*context)->run();
        wrong += mine.y != want[static_cast<size_t>(t)].y ||
                 mine.sorted != want[static_cast<size_t>(t)].sorted;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(wrong.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Memory, Threads, testing::Values("static", "dynamic"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace heddle::api
