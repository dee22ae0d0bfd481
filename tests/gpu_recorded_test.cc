// Runs on a GPU whose launches are recorded and replayed, over a driver that launches kernels in
// the kernel interpreter and captures streams as CUDA's does (interp_cuda.h, captures.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "api/host_interp.h"
#include "compiler/compiler.h"
#include "gpu_check.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp_cuda.h"
#include "runtime/cuda_device.h"
#include "runtime/executor.h"

namespace heddle {
namespace {

using tensor::Literal;

constexpr const char* kChain = R"(HloModule chain
ENTRY main {
  x = f32[6,40] parameter(0)
  y = f32[6,40] parameter(1)
  a = f32[6,40] add(x, y)
  b = f32[6,40] multiply(a, x)
  c = f32[6,40] subtract(b, y)
  ROOT d = f32[6,40] maximum(c, x)
})";

// Two chains that meet at the end.
constexpr const char* kBranches = R"(HloModule branches
ENTRY main {
  x = f32[60,40] parameter(0)
  y = f32[60,40] parameter(1)
  a = f32[60,40] add(x, y)
  b = f32[60,40] multiply(a, x)
  c = f32[60,40] negate(b)
  d = f32[60,40] subtract(x, y)
  e = f32[60,40] maximum(d, y)
  f = f32[60,40] negate(e)
  ROOT r = f32[60,40] multiply(c, f)
})";

// Its state x is in another of two places in every trip; the host decides whether there is one
// more.
constexpr const char* kLoop = R"(HloModule loop
body {
  s = (s32[], f32[40,40], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[40,40] get-tuple-element(s), index=1
  v = f32[40,40] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[40,40] add(v, x)
  y = f32[40,40] transpose(x), dimensions={1,0}
  ROOT r = (s32[], f32[40,40], f32[40,40]) tuple(next, y, w)
}
condition {
  s = (s32[], f32[40,40], f32[40,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  many = s32[] constant(11)
  ROOT c = pred[] compare(i, many), direction=LT
}
ENTRY main {
  x = f32[40,40] parameter(0)
  n = f32[40,40] negate(x)
  zero = s32[] constant(0)
  s = (s32[], f32[40,40], f32[40,40]) tuple(zero, x, n)
  w = (s32[], f32[40,40], f32[40,40]) while(s), condition=condition, body=body
  y = f32[40,40] get-tuple-element(w), index=1
  z = f32[40,40] get-tuple-element(w), index=2
  ROOT r = f32[40,40] subtract(z, y)
})";

class Recorded : public ::testing::Test {
 protected:
  // Operator by operator, so that there are many launches.
  void load(const char* text, bool spaces = true) {
    auto module = hlo::parse_module(text);
    ASSERT_TRUE(module) << module.error().message;
    module_ = std::move(*module);
    compiler::Options options;
    options.level = compiler::Level::O0;
    options.fuse = compiler::Fuse::off;
    options.own_memory = spaces;
    options.gpu_assembler = [](const std::string& cuda, const std::string&) {
      return Result<std::vector<uint8_t>>(std::vector<uint8_t>(cuda.begin(), cuda.end()));
    };
    auto program = compiler::compile(module_->clone(), {}, *target::find_target("sm_90"), options);
    ASSERT_TRUE(program) << program.error().message;
    gpu_.fault.clear();
    gpu_.captures = true;
    ASSERT_EQ(gpu_.know(*program), "");
    auto device = runtime::CudaDevice::open(gpu_.driver());
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(*device);
    auto executable =
        runtime::Executable::load(std::move(*program), device_->device(), api::host_functions());
    ASSERT_TRUE(executable) << executable.error().message;
    auto context = (*executable)->make_context();
    ASSERT_TRUE(context) << context.error().message;
    context_ = std::move(*context);
  }
  void TearDown() override {
    context_.reset();
    EXPECT_EQ(gpu_.graphs, 0);
  }

  // Arrays of a run on the device: arguments from a seed, and room for the result.
  struct Arrays {
    std::vector<Literal> arguments;
    std::vector<runtime::Block> inputs;
    runtime::Block output;
  };
  Arrays arrays(uint64_t seed) {
    Arrays made;
    made.arguments = interp::random_arguments(*module_, seed);
    for (const Literal& one : made.arguments) {
      made.inputs.push_back(*runtime::Block::allocate(device_->device(), one.bytes()));
      EXPECT_TRUE(device_->device().copy_now(made.inputs.back().data(), one.data(), one.bytes()));
    }
    made.output = *runtime::Block::allocate(device_->device(), made.arguments[0].bytes());
    return made;
  }
  // A run with these; how many launches and copies the driver was asked for, and how many replays.
  struct Asked {
    int64_t calls = 0, replays = 0;
    bool operator==(const Asked&) const = default;
  };
  Asked run(Arrays& arrays) {
    for (size_t i = 0; i < arrays.inputs.size(); ++i)
      EXPECT_TRUE(context_->bind_device_input(static_cast<int64_t>(i), arrays.inputs[i].data()));
    EXPECT_TRUE(context_->bind_device_output(0, arrays.output.data()));
    const std::vector<float> wrong(static_cast<size_t>(arrays.output.bytes()) / 4, -1);
    EXPECT_TRUE(
        device_->device().copy_now(arrays.output.data(), wrong.data(), arrays.output.bytes()));
    const Asked asked = count([&] { return context_->run(); });
    Literal got(arrays.arguments[0].shape());
    EXPECT_TRUE(device_->device().copy_now(got.mutable_data(), arrays.output.data(), got.bytes()));
    expect_right(got, arrays.arguments);
    return asked;
  }
  template <typename Run>
  Asked count(Run&& function) {
    const Asked before{gpu_.calls, gpu_.replays};
    const Status ran = function();
    EXPECT_TRUE(ran) << ran.error().message << "\n" << gpu_.fault;
    return {gpu_.calls - before.calls, gpu_.replays - before.replays};
  }
  void expect_right(const Literal& got, const std::vector<Literal>& arguments) {
    const auto want = interp::evaluate(*module_, arguments);
    ASSERT_TRUE(want) << want.error().message;
    const auto compared =
        tensor::compare(got, *want, tensor::derived_tolerance(tensor::Type::f32, 64));
    EXPECT_TRUE(compared.equal) << compared.describe();
  }

  InterpCuda& gpu_ = InterpCuda::get();
  std::unique_ptr<hlo::Module> module_;
  std::unique_ptr<runtime::CudaDevice> device_;
  std::unique_ptr<runtime::Context> context_;
};

// Three runs with some arrays, two with others, and again with the first: copies of ports, which
// stay on the device, are in the recording.
TEST_F(Recorded, TheSameAddressesAreReplayed) {
  for (const bool spaces : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(load(kChain, spaces));
    Arrays first = arrays(1), second = arrays(2), third = arrays(3);
    EXPECT_EQ(run(first), (Asked{4, 0}));
    EXPECT_EQ(run(first), (Asked{4, 1}));  // recorded
    EXPECT_EQ(run(first), (Asked{0, 1}));
    EXPECT_EQ(run(second), (Asked{4, 0}));
    EXPECT_EQ(run(first), (Asked{0, 1}));
    EXPECT_EQ(run(second), (Asked{4, 1}));
    EXPECT_EQ(run(first), (Asked{0, 1}));
    EXPECT_EQ(run(second), (Asked{0, 1}));
    EXPECT_EQ(gpu_.graphs, 2);
    EXPECT_EQ(run(third), (Asked{4, 0}));  // in the place of the older one
    EXPECT_EQ(run(second), (Asked{0, 1}));
    EXPECT_EQ(run(first), (Asked{4, 0}));
    context_.reset();
    EXPECT_EQ(gpu_.graphs, 0);
  }
}

// What does not depend on one another is in no order in the recording; the driver runs what came
// last first where it may.
TEST_F(Recorded, ChainsAreBranchesOfTheRecording) {
  for (const bool spaces : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(load(kBranches, spaces));
    Arrays one = arrays(1);
    for (int i = 0; i < 3; ++i) run(one);
    EXPECT_EQ(gpu_.graphs, 1);
    EXPECT_EQ(gpu_.roots, 2);
    context_.reset();
  }
  ASSERT_NO_FATAL_FAILURE(load(kChain, /*spaces=*/false));
  Arrays one = arrays(1);
  for (int i = 0; i < 3; ++i) run(one);
  EXPECT_EQ(gpu_.roots, 1);
}

// The arrays that a recording reads are read anew.
TEST_F(Recorded, OtherValuesAtTheSameAddresses) {
  ASSERT_NO_FATAL_FAILURE(load(kChain));
  Arrays one = arrays(1);
  for (uint64_t seed = 1; seed < 5; ++seed) {
    one.arguments = interp::random_arguments(*module_, seed);
    for (size_t i = 0; i < one.inputs.size(); ++i)
      ASSERT_TRUE(device_->device().copy_now(one.inputs[i].data(), one.arguments[i].data(),
                                             one.arguments[i].bytes()));
    EXPECT_EQ(run(one).replays, seed > 1 ? 1 : 0);
  }
}

TEST_F(Recorded, ArraysOfTheHostCrossOutsideOfIt) {
  ASSERT_NO_FATAL_FAILURE(load(kChain));
  const std::vector<Literal> arguments = interp::random_arguments(*module_, 7);
  Literal got(arguments[0].shape());
  for (size_t i = 0; i < arguments.size(); ++i)
    ASSERT_TRUE(context_->bind_input(static_cast<int64_t>(i), arguments[i].data()));
  ASSERT_TRUE(context_->bind_output(0, got.mutable_data()));
  for (const Asked& want : {Asked{4, 0}, {4, 1}, {0, 1}, {0, 1}}) {
    EXPECT_EQ(count([&] { return context_->run(); }), want);
    expect_right(got, arguments);
  }
  // Bound elsewhere, the launches' addresses are what they were, but the stretch is longer.
  Arrays on_device = arrays(8);
  EXPECT_EQ(run(on_device), (Asked{4, 0}));
  EXPECT_EQ(run(on_device), (Asked{4, 1}));
  EXPECT_EQ(run(on_device), (Asked{0, 1}));
}

// Each of the two places of a loop's states has a recording of its own.
TEST_F(Recorded, LoopsReplayTheirTrips) {
  ASSERT_NO_FATAL_FAILURE(load(kLoop));
  Arrays one = arrays(1), other = arrays(2);
  const Asked first = run(one), second = run(one), third = run(one);
  EXPECT_GT(first.replays, 0);  // in trips of the first run
  EXPECT_GE(third.replays, 11);
  EXPECT_LT(third.calls, second.calls);
  EXPECT_LT(second.calls, first.calls);
  EXPECT_GE(gpu_.graphs, 2);
  const Asked moved = run(other);
  EXPECT_GE(moved.replays, 11);
  EXPECT_EQ(run(one).replays, third.replays);
}

TEST_F(Recorded, ProfiledCommandsAreLaunchedOneByOne) {
  ASSERT_NO_FATAL_FAILURE(load(kChain));
  Arrays one = arrays(1);
  for (int i = 0; i < 3; ++i) run(one);
  context_->set_profile(true);
  EXPECT_EQ(run(one), (Asked{4, 0}));
  int64_t timed = 0;
  for (const runtime::CommandProfile& command : context_->profile()) timed += command.time.count;
  EXPECT_GE(timed, 4);
  context_->set_profile(false);
  EXPECT_EQ(run(one), (Asked{0, 1}));
}

TEST_F(Recorded, WithoutWaiting) {
  ASSERT_NO_FATAL_FAILURE(load(kChain));
  Arrays one = arrays(1);
  for (int i = 0; i < 2; ++i) run(one);
  EXPECT_EQ(count([&] { return context_->start(); }), (Asked{0, 1}));
  EXPECT_EQ(count([&] { return context_->start(); }), (Asked{0, 1}));
  EXPECT_TRUE(context_->wait());
}

// A driver that does not capture: all is launched as without recordings.
TEST_F(Recorded, WhereRecordingFailsLaunchesGoOn) {
  ASSERT_NO_FATAL_FAILURE(load(kChain));
  gpu_.captures = false;
  Arrays one = arrays(1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run(one), (Asked{4, 0}));
}

TEST_F(Recorded, CanBeSwitchedOff) {
  ::setenv("HEDDLE_GPU_GRAPHS", "0", 1);
  load(kChain);
  ::unsetenv("HEDDLE_GPU_GRAPHS");
  ASSERT_FALSE(device_->device().has_recordings());
  Arrays one = arrays(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(one), (Asked{4, 0}));
}

// Where the addresses are others again and again, making recordings ends.
TEST_F(Recorded, AddressesThatNeverStay) {
  ASSERT_NO_FATAL_FAILURE(load(kChain));
  std::vector<Arrays> many;
  for (uint64_t seed = 0; seed < 12; ++seed) many.push_back(arrays(seed));
  int64_t recorded = 0;
  for (Arrays& one : many) {
    run(one);
    recorded += run(one).replays;
  }
  EXPECT_EQ(recorded, 4);
}

}  // namespace
}  // namespace heddle
