// Random operators of compiled programs: their state is a hidden array of the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "api/heddle.h"
#include "api/session.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "program/program.h"
#include "program/text.h"
#include "program/views.h"

namespace heddle::api {
namespace {

using tensor::Literal;
using testing::HasSubstr;

// Two independent draws, and one of words.
constexpr const char* kTwo = R"(HloModule two
ENTRY e { x = f32[300] parameter(0) lo = f32[] constant(0) hi = f32[] constant(1)
  a = f32[300] rng(lo, hi), distribution=rng_uniform
  b = f32[300] rng(lo, hi), distribution=rng_normal
  w = u64[2] rng-get-and-update-state(), delta=7
  y = f32[300] add(x, a)
  ROOT t = (f32[300], f32[300], u64[2]) tuple(y, b, w) })";

constexpr const char* kUniform = R"(HloModule uniform
ENTRY e { x = f32[64] parameter(0) lo = f32[] constant(0) hi = f32[] constant(1)
  r = f32[64] rng(lo, hi), distribution=rng_uniform
  ROOT y = f32[64] add(x, r) })";

// One row of `all` per trip.
constexpr const char* kLoop = R"(HloModule loop
step { s = (s32[], f32[6,50]) parameter(0) i = s32[] get-tuple-element(s), index=0
  all = f32[6,50] get-tuple-element(s), index=1
  lo = f32[] constant(0) hi = f32[] constant(1) one = s32[] constant(1) zero = s32[] constant(0)
  r = f32[1,50] rng(lo, hi), distribution=rng_uniform
  put = f32[6,50] dynamic-update-slice(all, r, i, zero) n = s32[] add(i, one)
  ROOT t = (s32[], f32[6,50]) tuple(n, put) }
more { s = (s32[], f32[6,50]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(6) ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[6,50] parameter(0) zero = s32[] constant(0)
  start = (s32[], f32[6,50]) tuple(zero, x)
  end = (s32[], f32[6,50]) while(start), condition=more, body=step
  ROOT all = f32[6,50] get-tuple-element(end), index=1 })";

// A draw if the parameter is positive, followed by another one.
constexpr const char* kBranch = R"(HloModule branch
draws { x = f32[4] parameter(0) lo = f32[] constant(0) hi = f32[] constant(1)
  r = f32[4] rng(lo, hi), distribution=rng_uniform ROOT y = f32[4] add(x, r) }
rests { ROOT x = f32[4] parameter(0) }
ENTRY e { x = f32[4] parameter(0) one = f32[1] slice(x), slice={[0:1]} first = f32[] reshape(one)
  lo = f32[] constant(0) hi = f32[] constant(1) which = pred[] compare(first, lo), direction=GT
  a = f32[4] conditional(which, x, x), true_computation=draws, false_computation=rests
  b = f32[4] rng(lo, hi), distribution=rng_uniform
  ROOT t = (f32[4], f32[4]) tuple(a, b) })";

CompileOptions options(const char* level = "O2") {
  CompileOptions made;
  made.level = level;
  made.threads = 2;
  made.cache = "off";
  return made;
}

// A context, with memory for its ports.
struct Runner {
  Runner(Program& program, float x) {
    auto made = program.make_context();
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    context = std::move(*made);
    for (const Port& port : program.inputs()) {
      inputs.emplace_back(port.shape);
      for (int64_t i = 0; i < inputs.back().elems(); ++i) inputs.back().set_f64(i, x);
    }
    for (const Port& port : program.outputs()) outputs.emplace_back(port.shape);
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_TRUE(context->bind_input(static_cast<int64_t>(i), inputs[i].data()));
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_TRUE(context->bind_output(static_cast<int64_t>(i), outputs[i].mutable_data()));
  }
  // Returns copies of its outputs.
  std::vector<Literal> operator()() {
    const Status ran = context->run();
    EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
    std::vector<Literal> result;
    for (const Literal& output : outputs) {
      Literal& copy = result.emplace_back(output.shape());
      std::memcpy(copy.mutable_data(), output.data(), static_cast<size_t>(output.bytes()));
    }
    return result;
  }
  std::unique_ptr<Context> context;
  std::vector<Literal> inputs, outputs;
};

// The interpreter's results, with a random state that is kept between evaluations.
class Reference {
 public:
  explicit Reference(const char* text) : module_(std::move(*hlo::parse_module(text))) {}
  std::vector<Literal> operator()(const std::vector<Literal>& inputs) {
    interp::Options options;
    options.random = &state_;
    auto result = interp::evaluate(*module_, inputs, options);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    if (!result->shape().is_tuple()) return {*result};
    return {result->elements().begin(), result->elements().end()};
  }

 private:
  std::unique_ptr<hlo::Module> module_;
  interp::RandomState state_;
};

void expect_close(const std::vector<Literal>& got, const std::vector<Literal>& want,
                  const std::string& where) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    for (int64_t e = 0; e < got[i].elems(); ++e) {
      if (tensor::is_float(got[i].type()))
        ASSERT_NEAR(got[i].get_f64(e), want[i].get_f64(e), 1e-6) << where << " output " << i;
      else
        ASSERT_EQ(got[i].get_bits(e), want[i].get_bits(e)) << where << " output " << i;
    }
}

std::shared_ptr<Program> compiled(const char* text, const CompileOptions& how) {
  auto model = Model::parse("drawn", text, {});
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  auto program = Program::compile(**model, how);
  EXPECT_TRUE(program) << (program ? "" : program.error().message);
  return *program;
}

TEST(RandomState, RunsGoOnAsTheInterpreterDoes) {
  for (const char* text : {kTwo, kLoop, kBranch})
    for (const char* level : {"O0", "O1", "O2"})
      for (const char* memory : {"static", "dynamic"}) {
        CompileOptions how = options(level);
        how.memory = memory;
        const auto program = compiled(text, how);
        Runner above(*program, 1), below(*program, -1);
        Reference reference(text);
        for (int run = 0; run < 4; ++run) {
          Runner& one = run % 2 == 0 ? above : below;  // the contexts share the state
          const std::vector<Literal> got = one(), want = reference(one.inputs);
          expect_close(got, want, fmt::format("{} {} run {}:\n{}", level, memory, run, text));
        }
      }
}

// The device "interp", whose contexts share a state too.
TEST(RandomState, InterpretedRunsGoOn) {
  for (const char* device : {"interp", "interp:f64"})
    for (const char* text : {kTwo, kLoop, kBranch}) {
      CompileOptions how = options();
      how.device = device;
      const auto interpreted = compiled(text, how), program = compiled(text, options());
      Runner above(*interpreted, 1), below(*interpreted, -1), one(*program, 1), other(*program, -1);
      for (int run = 0; run < 4; ++run)
        expect_close(run % 2 == 0 ? above() : below(), run % 2 == 0 ? one() : other(),
                     fmt::format("{} run {}:\n{}", device, run, text));
    }
}

TEST(RandomState, NoTwoDrawsAreAlike) {
  const auto two = compiled(kTwo, options());
  Runner run(*two, 0);
  const std::vector<Literal> first = run(), second = run();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_FALSE(first[i] == second[i]) << i;
  const auto loop = compiled(kLoop, options());
  Runner trips(*loop, 0);
  std::set<float> all;
  for (int i = 0; i < 3; ++i) {
    const std::vector<Literal> outputs = trips();
    for (const float x : outputs[0].values<float>()) all.insert(x);
  }
  EXPECT_GT(all.size(), 890u);  // of 900; f32 has some twice
}

// One kernel draws the numbers and uses them; another one computes the next state, in place.
TEST(RandomState, IsDrawnInTheKernelsThatRead) {
  const auto program = compiled(kUniform, options());
  const program::Program& p = *program->compiled();
  EXPECT_EQ(program::to_string(p).find("host"), std::string::npos) << program::to_string(p);
  for (const program::Command& command : p.commands)
    EXPECT_TRUE(std::holds_alternative<program::Launch>(command)) << program::to_string(p);
  EXPECT_LE(p.commands.size(), 2u) << program::to_string(p);
  ASSERT_EQ(p.states.size(), 1u);
  ASSERT_TRUE(p.outputs.back().buffer.valid());
  EXPECT_EQ(p.buffers[p.outputs.back().buffer.index()].alias, p.inputs.back().buffer);
  EXPECT_THAT(program::to_string(p), HasSubstr("state input "));
}

TEST(RandomState, NobodySeesIt) {
  for (const char* device : {"cpu", "interp"}) {
    CompileOptions how = options();
    how.device = device;
    const auto program = compiled(kUniform, how);
    EXPECT_EQ(program->inputs().size(), 1u);
    EXPECT_EQ(program->outputs().size(), 1u);
    EXPECT_EQ(program->facts().input_bytes, 256);
    EXPECT_EQ(program->facts().output_bytes, 256);
    auto context = program->make_context();
    ASSERT_TRUE(context);
    uint64_t state[3];
    EXPECT_THAT((*context)->bind_input(1, state).error().message,
                HasSubstr("no input 1, it has 1"));
    EXPECT_THAT((*context)->bind_output(1, state).error().message,
                HasSubstr("no output 1, it has 1"));
  }
  heddle_model* model = nullptr;
  heddle_program* program = nullptr;
  ASSERT_EQ(heddle_model_parse("m.hlo", kUniform, std::strlen(kUniform), nullptr, &model), nullptr);
  ASSERT_EQ(heddle_compile(model, nullptr, &program), nullptr);
  for (auto* ask : {heddle_program_input, heddle_program_output}) {
    heddle_port port{};
    port.struct_size = sizeof port;
    ask(program, 0, &port);
    EXPECT_NE(port.name, nullptr);
    ask(program, 1, &port);
    EXPECT_EQ(port.name, nullptr);
  }
  heddle_program_free(program);
  heddle_model_free(model);
}

TEST(RandomState, LoadedItBeginsAnew) {
  const std::string path =
      testing::TempDir() + "/heddle_random_" + std::to_string(getpid()) + ".heddle";
  const auto program = compiled(kTwo, options());
  Runner run(*program, 0);
  const std::vector<Literal> first = run(), second = run();
  const Status saved = program->save(path);
  ASSERT_TRUE(saved) << saved.error().message;
  for (int load = 0; load < 2; ++load) {
    auto model = Model::open(path, {});
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ((*model)->inputs().size(), 1u);
    EXPECT_EQ((*model)->outputs().size(), 3u);
    auto loaded = Program::compile(**model, options());
    ASSERT_TRUE(loaded) << loaded.error().message;
    Runner again(**loaded, 0);
    EXPECT_TRUE(again() == first);
    EXPECT_TRUE(again() == second);
  }
  unlink(path.c_str());
}

// In any order, each counter is drawn exactly once.
TEST(RandomState, ThreadsDrawDifferentNumbers) {
  constexpr int kThreads = 4, kRuns = 50;
  const auto program = compiled(kUniform, options());
  std::vector<std::vector<float>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Runner run(*program, 0);
      for (int i = 0; i < kRuns; ++i) {
        const std::vector<Literal> outputs = run();
        const auto values = outputs[0].values<float>();
        drawn[static_cast<size_t>(t)].insert(drawn[static_cast<size_t>(t)].end(), values.begin(),
                                             values.end());
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<float> got, want;
  for (const auto& one : drawn) got.insert(got.end(), one.begin(), one.end());
  const auto alone = compiled(kUniform, options());
  Runner run(*alone, 0);
  for (int i = 0; i < kThreads * kRuns; ++i) {
    const std::vector<Literal> outputs = run();
    for (const float x : outputs[0].values<float>()) want.push_back(x);
  }
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(got, want);
}

// As specialisations of bounded dimensions and background compilations do.
TEST(RandomState, ProgramsMayHaveOneInCommon) {
  const auto one = compiled(kUniform, options()), other = compiled(kUniform, options("O0"));
  ASSERT_TRUE(other->use_states(one->states()));
  Runner a(*one, 0), b(*other, 0);
  Reference reference(kUniform);
  for (int i = 0; i < 2; ++i) {
    expect_close(a(), reference(a.inputs), "the one");
    expect_close(b(), reference(b.inputs), "the other");
  }
  const auto none = compiled(
      "HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] "
      "negate(x) }",
      options());
  EXPECT_TRUE(none->use_states(one->states())) << "it needs none";
}

TEST(RandomState, GoesOnBehindCompilationInTheBackground) {
  CompileOptions how = options();
  how.background = true;
  const auto program = compiled(kUniform, how);
  Runner run(*program, 0);
  Reference reference(kUniform);
  expect_close(run(), reference(run.inputs), "the first level");
  ASSERT_TRUE(program->wait(std::chrono::minutes(2)));
  for (int i = 0; i < 2; ++i) expect_close(run(), reference(run.inputs), "the second");
}

TEST(RandomState, ScalarBodiesMayNotDraw) {
  auto model =
      Model::parse("mapped",
                   "HloModule mapped\nbody { a = f32[] parameter(0) b = f32[] constant(1)\n"
                   "  ROOT r = f32[] rng(a, b), distribution=rng_uniform }\n"
                   "ENTRY e { x = f32[4] parameter(0)\n"
                   "  ROOT m = f32[4] map(x), dimensions={0}, to_apply=body }",
                   {});
  ASSERT_TRUE(model);
  const auto program = Program::compile(**model, options());
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().kind, ErrorKind::user);
  EXPECT_THAT(program.error().message, HasSubstr("%m (map): the computation %body"));
}

// For text after the pass, the state is an ordinary input and output.
TEST(RandomState, OfDumpedTextIsAnOrdinaryPort) {
  auto model = Model::parse("dumped", kUniform, {});
  ASSERT_TRUE(model);
  const auto text = compile_until(**model, options(), "thread_random_state");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("heddle_states={0 11400714819323198485 0}"));
  const auto program = compiled(text->c_str(), options());
  EXPECT_EQ(program->inputs().size(), 2u);
  EXPECT_EQ(program->outputs().size(), 2u);
  EXPECT_TRUE(program->compiled()->states.empty());
}

}  // namespace
}  // namespace heddle::api
