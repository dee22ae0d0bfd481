// Programs on the device `virtual`: streams in the most hostile order, races, faults. Every file of
// testdata/control and some of testdata/kinds against the cpu's bits, with static and dynamic
// memory.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "api/host_interp.h"
#include "api/session.h"
#include "hlo/module.h"

namespace heddle {
namespace {

using api::CompileOptions;
using api::Model;
using Bytes = std::vector<std::vector<char>>;

std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const char* folder : {"control", "kinds"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string(HEDDLE_SOURCE_DIR) +
                                                                 "/tests/testdata/" + folder))
      if (entry.path().extension() == ".hlo") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  std::vector<std::string> chosen;
  for (size_t i = 0; i < found.size(); ++i)
    if (i % 4 == 0 || found[i].find("/control/") != std::string::npos) chosen.push_back(found[i]);
  return chosen;
}

struct Outcome {
  Bytes outputs;
  std::string error;
};

// 64-byte aligned is not asked for: the device has memory of its own.
Outcome outcome_of(Model& model, const CompileOptions& options, int times = 1) {
  Outcome result;
  auto program = api::Program::compile(model, options);
  if (!program) return {{}, program.error().message};
  auto context = (*program)->make_context();
  if (!context) return {{}, context.error().message};
  Bytes inputs;
  std::vector<void*> addresses;
  for (const api::Port& port : model.inputs()) {
    inputs.emplace_back(static_cast<size_t>(port.bytes));
    addresses.push_back(inputs.back().data());
  }
  EXPECT_TRUE(model.random_inputs(3, addresses));
  for (const api::Port& port : model.outputs())
    result.outputs.emplace_back(static_cast<size_t>(port.bytes));
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE((*context)->bind_input(static_cast<int64_t>(i), inputs[i].data()));
  for (size_t i = 0; i < result.outputs.size(); ++i)
    EXPECT_TRUE((*context)->bind_output(static_cast<int64_t>(i), result.outputs[i].data()));
  for (int i = 0; i < times; ++i)
    if (Status ran = (*context)->run(); !ran) {
      result.error = ran.error().message;
      break;
    }
  return result;
}

CompileOptions options(const std::string& device, const char* level, const char* memory) {
  CompileOptions made;
  made.device = device;
  made.level = level;
  made.memory = memory;
  made.threads = 1;
  return made;
}

class VirtualPrograms : public testing::TestWithParam<std::string> {};

// Control flow at two levels, with both ways of memory; of the others every fourth, once.
TEST_P(VirtualPrograms, AreTheCpusBits) {
  auto model = Model::open(GetParam(), {});
  ASSERT_TRUE(model) << model.error().message;
  const bool all = GetParam().find("/control/") != std::string::npos;
  int seed = 0;
  for (const char* level : {"O2", "O0"}) {
    const Outcome want = outcome_of(**model, options("cpu", level, "static"));
    ASSERT_EQ(want.error, "");
    for (const char* memory : {"static", "dynamic"}) {
      const std::string device =
          fmt::format("virtual:host,streams={},seed={}", ++seed % 2 == 0 ? 1 : 3, seed);
      const int times = api::draws_random_numbers(*(*model)->module()) ? 1 : 2;
      const Outcome got = outcome_of(**model, options(device, level, memory), times);
      EXPECT_EQ(got.error, "") << device << " " << level << " " << memory;
      EXPECT_EQ(got.outputs, want.outputs) << device << " " << level << " " << memory;
      if (!all) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, VirtualPrograms, testing::ValuesIn(files()), [](const auto& info) {
  const std::filesystem::path path(info.param);
  return path.parent_path().filename().string() + "_" + path.stem().string();
});

// Four branches that meet: several streams, at every level.
constexpr const char* kBranches = R"(HloModule branches
ENTRY e {
  x = f32[64,64] parameter(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  c = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  a2 = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b2 = f32[64,64] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c2 = f32[64,64] dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ab = f32[64,64] dot(a2, b2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[64,64] dot(ab, c2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[64,64], f32[64,64]) tuple(r, b2)
}
)";

// Loops and branches, one stream.
constexpr const char* kLoop = R"(HloModule loop
go { s = (s32[], f32[32,32]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[32,32]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[32,32] get-tuple-element(s), index=1
  y = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[32,32] tanh(y)
  ROOT r = (s32[], f32[32,32]) tuple(j, z) }
ENTRY e {
  x = f32[32,32] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[32,32]) tuple(zero, x)
  last = (s32[], f32[32,32]) while(start), condition=go, body=step
  ROOT y = f32[32,32] get-tuple-element(last), index=1
}
)";

struct Compiled {
  std::unique_ptr<Model> program;  // compiled before
  Bytes want;
};

Compiled compiled(const char* text, const char* level, const char* memory) {
  Compiled result;
  auto model = Model::parse("faults", text, {});
  EXPECT_TRUE(model) << model.error().message;
  const CompileOptions wanted = options("cpu", level, memory);
  // A compiled program has other random inputs than its model.
  const std::string path = testing::TempDir() + fmt::format("/heddle_faults_{}.heddle", ::getpid());
  auto program = api::Program::compile(**model, wanted);
  EXPECT_TRUE(program) << program.error().message;
  EXPECT_TRUE((*program)->save(path));
  auto opened = Model::open(path, {});
  EXPECT_TRUE(opened) << opened.error().message;
  result.program = std::move(*opened);
  const Outcome want = outcome_of(*result.program, options("cpu", level, memory));
  EXPECT_EQ(want.error, "");
  result.want = want.outputs;
  std::filesystem::remove(path);  // it stays mapped
  return result;
}

// Compiled once, loaded and run again and again on a device with a fault: a right answer or a clean
// error. What of the device was not given back is a failed check. HEDDLE_FAULT_RUNS=100000 for as
// many; leaks of the host's memory are AddressSanitizer's to find (script/soak).
TEST(virtual_programs, FaultsAreCleanErrorsOrRightAnswers) {
  const char* wanted = std::getenv("HEDDLE_FAULT_RUNS");
  const int runs = wanted == nullptr ? 1000 : std::atoi(wanted);
  std::vector<Compiled> programs;
  for (const char* text : {kBranches, kLoop})
    for (const char* memory : {"static", "dynamic"})
      for (const char* level : {"O0", "O1"}) programs.push_back(compiled(text, level, memory));
  std::mt19937 random(1);
  int errors = 0, right = 0, of_memory = 0;
  for (int i = 0; i < runs; ++i) {
    const Compiled& one = programs[random() % programs.size()];
    const char* keys[] = {"no-memory", "lost-event", "lost", "lost-stream", "slow"};
    const size_t key = random() % 5;
    const std::string device =
        fmt::format("virtual:host,seed={},streams={},{}={}", i, 1 + random() % 4, keys[key],
                    1 + random() % (key < 3 ? 40 : 4));
    const Outcome got = outcome_of(*one.program, options(device, "O1", "static"), 2);
    if (got.error.empty()) {
      ASSERT_EQ(got.outputs, one.want) << device;
      ++right;
    } else {
      ASSERT_NE(got.error.find("device virtual:host"), std::string::npos) << got.error;
      ASSERT_EQ(got.error.find('\n'), std::string::npos) << got.error;
      of_memory += got.error.find("no memory") != std::string::npos;
      ++errors;
    }
  }
  EXPECT_GT(errors, runs / 20);
  EXPECT_GT(right, runs / 20);
  EXPECT_GT(of_memory, runs / 200);
  if (wanted != nullptr)
    fmt::print("{} runs with a fault: {} right, {} errors, {} of them of memory\n", runs, right,
               errors, of_memory);
}

}  // namespace
}  // namespace heddle
