// Functions for servers, through the C interface: cancellation, progress, compilation in the
// background, a caller's allocator, custom calls.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "api/heddle.h"

namespace heddle::api {
namespace {

using testing::HasSubstr;

// Sums, so that levels may differ in rounding.
constexpr const char* kRows = R"(HloModule rows
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[64,64] parameter(0)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[64,64] tanh(y)
  zero = f32[] constant(0)
  ROOT s = f32[64] reduce(z, zero), dimensions={1}, to_apply=sum
})";

// Practically endless; the sort prevents the loop from becoming one kernel.
constexpr const char* kEndless = R"(HloModule endless
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
go { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2000000000)
  ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[64] get-tuple-element(s), index=1
  t = f32[64] sort(x), dimensions={0}, to_apply=less
  y = f32[64] cosine(t)
  ROOT r = (s32[], f32[64]) tuple(j, y) }
ENTRY main {
  x = f32[64] parameter(0)
  first = s32[] parameter(1)
  start = (s32[], f32[64]) tuple(first, x)
  last = (s32[], f32[64]) while(start), condition=go, body=step
  ROOT y = f32[64] get-tuple-element(last), index=1
})";

// A loop of so many steps, each a chain of small products, that is one kernel.
std::string long_loop(int steps) {
  std::string chain, last = "x";
  for (int k = 0; k < 24; ++k) {
    chain += fmt::format(
        "  y{0} = f32[24,24] dot({1}, {2}), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={{0}}\n"
        "  t{0} = f32[24,24] tanh(y{0})\n",
        k, k % 2 == 0 ? "w" : last, k % 2 == 0 ? last : "w");
    last = fmt::format("t{}", k);
  }
  const std::string state = "(s32[], f32[24,24], f32[24,24])";
  return fmt::format(
      "HloModule long\n"
      "go {{ s = {0} parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n"
      "  n = s32[] constant({1})\n"
      "  ROOT r = pred[] compare(i, n), direction=LT }}\n"
      "step {{ s = {0} parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n"
      "  one = s32[] constant(1)\n"
      "  j = s32[] add(i, one)\n"
      "  x = f32[24,24] get-tuple-element(s), index=1\n"
      "  w = f32[24,24] get-tuple-element(s), index=2\n{2}"
      "  ROOT r = {0} tuple(j, {3}, w) }}\n"
      "ENTRY main {{\n"
      "  x = f32[24,24] parameter(0)\n"
      "  w = f32[24,24] parameter(1)\n"
      "  zero = s32[] constant(0)\n"
      "  start = {0} tuple(zero, x, w)\n"
      "  last = {0} while(start), condition=go, body=step\n"
      "  ROOT y = f32[24,24] get-tuple-element(last), index=1\n}}\n",
      state, steps, chain, last);
}

constexpr const char* kCustom = R"(HloModule custom
ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[2,3] add(x, x)
  pair = (f32[3], s32[]) custom-call(y, x), custom_call_target="test.columns", backend_config="scale"
  sums = f32[3] get-tuple-element(pair), index=0
  count = s32[] get-tuple-element(pair), index=1
  negated = f32[3] negate(sums)
  ROOT t = (f32[3], s32[]) tuple(negated, count)
})";

class session : public testing::Test {
 protected:
  ~session() override {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
  }
  static void ok(heddle_status* status) {
    const std::string message = heddle_status_message(status);
    heddle_status_free(status);
    if (status != nullptr) throw std::runtime_error(message);
  }
  static std::string failure(heddle_status* status, int kind) {
    EXPECT_EQ(heddle_status_kind(status), kind) << heddle_status_message(status);
    std::string message = heddle_status_message(status);
    heddle_status_free(status);
    return message;
  }
  void parse(const char* text) {
    ok(heddle_model_parse("test", text, strlen(text), nullptr, &model_));
    options_.struct_size = sizeof options_;
    options_.cache = "off";
    options_.threads = 1;
  }
  void compile() { ok(heddle_compile(model_, &options_, &program_)); }
  void make_context() { ok(heddle_context_create(program_, &context_)); }
  heddle_program_info info() const {
    heddle_program_info info{sizeof info};
    heddle_program_get_info(program_, &info);
    return info;
  }

  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  heddle_context* context_ = nullptr;
  heddle_compile_options options_{};
};

TEST_F(session, ARunIsCancelledFromAnotherThread) {
  parse(kEndless);
  for (const char* memory : {"static", "dynamic"}) {
    for (const char* level : {"O0", "O2"}) {
      options_.memory = memory;
      options_.level = level;
      compile();
      make_context();
      std::vector<float> x(64, 0.5f), y(64);
      int32_t first = 0;
      ok(heddle_context_bind_input(context_, 0, x.data()));
      ok(heddle_context_bind_input(context_, 1, &first));
      ok(heddle_context_bind_output(context_, 0, y.data()));
      std::thread other([&] {
        usleep(20'000);
        heddle_context_cancel(context_);
      });
      EXPECT_THAT(failure(heddle_context_run(context_), HEDDLE_CANCELLED), HasSubstr("cancelled"));
      other.join();
      // It runs again; and a cancellation that comes before ends the next run.
      first = 1'999'999'990;
      ok(heddle_context_run(context_));
      const std::vector<float> want = y;
      heddle_context_cancel(context_);
      failure(heddle_context_run(context_), HEDDLE_CANCELLED);
      ok(heddle_context_run(context_));
      EXPECT_EQ(want, y);
      heddle_context_free(std::exchange(context_, nullptr));
      heddle_program_free(std::exchange(program_, nullptr));
    }
  }
}

// If the steps of a loop are one long kernel, it is split: cancellation takes effect between the
// pieces.
TEST_F(session, ALoopOfOneKernelIsCancelled) {
  std::vector<float> x(576, 0.5f), w(576), y(576), want;
  for (size_t i = 0; i < w.size(); ++i) w[i] = i % 25 == 0 ? 1.5f : 0.001f;
  const auto make = [&](int trips, const char* level) {
    heddle_context_free(std::exchange(context_, nullptr));
    heddle_program_free(std::exchange(program_, nullptr));
    heddle_model_free(std::exchange(model_, nullptr));
    parse(long_loop(trips).c_str());
    options_.level = level;
    compile();
    make_context();
    ok(heddle_context_bind_input(context_, 0, x.data()));
    ok(heddle_context_bind_input(context_, 1, w.data()));
    ok(heddle_context_bind_output(context_, 0, y.data()));
  };
  make(60'000, "O2");  // more than 0.3 s
  std::thread other([&] {
    usleep(10'000);
    heddle_context_cancel(context_);
  });
  EXPECT_THAT(failure(heddle_context_run(context_), HEDDLE_CANCELLED), HasSubstr("cancelled"));
  other.join();
  // Results are the same with and without splitting.
  make(8'000, "O0");
  ok(heddle_context_run(context_));
  want = y;
  make(8'000, "O2");
  ok(heddle_context_run(context_));
  EXPECT_THAT(y, testing::Pointwise(testing::FloatNear(1e-4f), want));
}

struct Told {
  std::vector<std::string> steps;
  std::string stop_at;
};

int32_t note(const heddle_compile_progress* progress, void* context) {
  auto& told = *static_cast<Told*>(context);
  EXPECT_GE(progress->seconds, 0);
  EXPECT_LT(progress->done, progress->steps);
  if (told.steps.empty() || told.steps.back() != progress->step)
    told.steps.push_back(progress->step);
  return told.stop_at == progress->step;
}

TEST_F(session, ProgressIsToldAndCanCancel) {
  parse(kRows);
  Told told;
  options_.progress = &note;
  options_.progress_context = &told;
  compile();
  const std::vector<std::string> all = told.steps;
  EXPECT_THAT(all, testing::ElementsAre("optimize", "fuse", "stitch", "codegen", "plan", "load"));
  for (const std::string& step : all) {
    told = {{}, step};
    heddle_program* none = nullptr;
    EXPECT_THAT(failure(heddle_compile(model_, &options_, &none), HEDDLE_CANCELLED),
                HasSubstr(step));
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(told.steps.back(), step);
  }
}

TEST_F(session, ContextsGoOverToWhatIsCompiledBehindThem) {
  parse(kRows);
  compile();
  make_context();
  std::vector<float> x(64 * 64), want(64), y(64), first(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 31) * 0.01f;
  ok(heddle_context_bind_input(context_, 0, x.data()));
  ok(heddle_context_bind_output(context_, 0, want.data()));
  ok(heddle_context_run(context_));
  EXPECT_STREQ(info().swap, "");
  heddle_context_free(std::exchange(context_, nullptr));
  heddle_program_free(std::exchange(program_, nullptr));

  // Continues only after the first run.
  std::atomic<bool> go_on{false};
  options_.background = 1;
  options_.progress_context = &go_on;
  options_.progress = [](const heddle_compile_progress* progress, void* context) -> int32_t {
    static const std::thread::id foreground = std::this_thread::get_id();
    while (std::this_thread::get_id() != foreground && !*static_cast<std::atomic<bool>*>(context))
      usleep(1000);
    return 0;
  };
  compile();
  heddle_model_free(std::exchange(model_, nullptr));  // no longer needed
  make_context();
  ok(heddle_context_bind_input(context_, 0, x.data()));
  ok(heddle_context_bind_output(context_, 0, first.data()));
  ok(heddle_context_run(context_));
  EXPECT_STREQ(info().level, "O0");
  EXPECT_STREQ(info().swap, "rounding");
  EXPECT_EQ(info().pending, 1);
  int32_t ready = 1;
  ok(heddle_program_wait(program_, 1, &ready));
  EXPECT_EQ(ready, 0);
  go_on = true;
  ok(heddle_program_wait(program_, 60'000, &ready));
  EXPECT_EQ(ready, 1);
  EXPECT_STREQ(info().level, "O2");
  EXPECT_EQ(info().pending, 0);
  ok(heddle_context_bind_output(context_, 0, y.data()));
  ok(heddle_context_run(context_));  // in the same context
  EXPECT_EQ(y, want);                // the bits of a compilation in the foreground
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(first[i], y[i], 1e-4);
  heddle_context* another = nullptr;
  ok(heddle_context_create(program_, &another));
  heddle_context_free(another);
}

TEST_F(session, FreeingAProgramEndsItsCompilation) {
  parse(kRows);
  options_.background = 1;
  compile();
  make_context();
  heddle_program_free(std::exchange(program_, nullptr));  // the context keeps it alive
  std::vector<float> x(64 * 64), y(64);
  ok(heddle_context_bind_input(context_, 0, x.data()));
  ok(heddle_context_bind_output(context_, 0, y.data()));
  for (int i = 0; i < 100; ++i) ok(heddle_context_run(context_));
}

struct Memory {
  std::atomic<int64_t> calls{0}, live_bytes{0};
  bool is_empty = false, is_odd = false;
};

TEST_F(session, MemoryComesFromTheCaller) {
  parse(kRows);
  Memory memory;
  heddle_allocator allocator{sizeof allocator};
  allocator.context = &memory;
  allocator.allocate = [](void* context, int64_t bytes) -> void* {
    auto& m = *static_cast<Memory*>(context);
    if (m.is_empty) return nullptr;
    ++m.calls;
    m.live_bytes += bytes;
    char* raw =
        static_cast<char*>(std::aligned_alloc(64, static_cast<size_t>(bytes + 127) / 64 * 64));
    return m.is_odd ? raw + 8 : raw;
  };
  allocator.release = [](void* context, void* at, int64_t bytes) {
    auto& m = *static_cast<Memory*>(context);
    m.live_bytes -= bytes;
    std::free(m.is_odd ? static_cast<char*>(at) - 8 : at);
  };
  options_.allocator = &allocator;
  options_.level = "O0";
  compile();
  make_context();
  EXPECT_GE(memory.live_bytes, info().temporary_bytes);
  std::vector<float> x(64 * 64), y(64);
  ok(heddle_context_bind_input(context_, 0, x.data()));
  ok(heddle_context_bind_output(context_, 0, y.data()));
  ok(heddle_context_run(context_));
  const int64_t calls = memory.calls;
  EXPECT_GT(calls, 0);
  for (int i = 0; i < 5; ++i) ok(heddle_context_run(context_));
  EXPECT_EQ(memory.calls, calls);  // a steady run allocates nothing
  heddle_context_free(std::exchange(context_, nullptr));
  memory.is_empty = true;
  EXPECT_THAT(failure(heddle_context_create(program_, &context_), HEDDLE_MACHINE_ERROR),
              HasSubstr("the allocator has no"));
  memory.is_empty = false;
  memory.is_odd = true;
  EXPECT_THAT(failure(heddle_context_create(program_, &context_), HEDDLE_MACHINE_ERROR),
              HasSubstr("not aligned"));
  memory.is_odd = false;
  heddle_program_free(std::exchange(program_, nullptr));
  EXPECT_EQ(memory.live_bytes, 0);
}

int32_t columns(const heddle_custom_call* call, void* context) {
  if (std::string(call->target) != "test.columns" || call->argument_count != 2 ||
      call->result_count != 2 || call->arguments[0].rank != 2 ||
      std::string(call->config).find("scale") == std::string::npos)
    return 1;
  const heddle_array& x = call->arguments[0];
  const auto* from = static_cast<const float*>(x.data);
  for (int64_t i = 0; i < x.dims[0] * x.dims[1]; ++i)
    static_cast<float*>(call->results[0].data)[i % x.dims[1]] +=
        from[i] * *static_cast<float*>(context);
  *static_cast<int32_t*>(call->results[1].data) = static_cast<int32_t>(x.dims[0]);
  return 0;
}

TEST_F(session, CustomCallsAreTheCallersFunctions) {
  parse(kCustom);
  EXPECT_THAT(failure(heddle_compile(model_, &options_, &program_), HEDDLE_USER_ERROR),
              HasSubstr("test.columns"));
  float scale = 10;
  heddle_register_custom_call("test.columns", &columns, &scale);
  for (const char* device : {"interp", "cpu", "virtual:host"}) {
    for (const char* level : {"O0", "O2"}) {
      options_.device = device;
      options_.level = level;
      compile();
      make_context();
      const std::vector<float> x = {1, 2, 3, 4, 5, 6};
      std::vector<float> y(3);
      int32_t count = 0;
      ok(heddle_context_bind_input(context_, 0, x.data()));
      ok(heddle_context_bind_output(context_, 0, y.data()));
      ok(heddle_context_bind_output(context_, 1, &count));
      ok(heddle_context_run(context_));
      EXPECT_THAT(y, testing::ElementsAre(-100, -140, -180)) << device << level;
      EXPECT_EQ(count, 2);
      heddle_context_free(std::exchange(context_, nullptr));
      heddle_program_free(std::exchange(program_, nullptr));
    }
  }
  heddle_register_custom_call(
      "test.columns",
      [](const heddle_custom_call* call, void*) -> int32_t {
        std::strncpy(call->error, "no columns", static_cast<size_t>(call->error_bytes));
        return 7;
      },
      nullptr);
  options_.device = "cpu";
  compile();
  make_context();
  std::vector<float> x(6), y(3);
  int32_t count = 0;
  ok(heddle_context_bind_input(context_, 0, x.data()));
  ok(heddle_context_bind_output(context_, 0, y.data()));
  ok(heddle_context_bind_output(context_, 1, &count));
  EXPECT_THAT(failure(heddle_context_run(context_), HEDDLE_USER_ERROR),
              HasSubstr("failed with 7: no columns"));
  heddle_register_custom_call("test.columns", nullptr, nullptr);
}

}  // namespace
}  // namespace heddle::api
