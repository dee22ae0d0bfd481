#include "runtime/pooled_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/trace.h"
#include "program/streams.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"
#include "runtime/virtual_device.h"

namespace heddle::runtime {
namespace {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::Program;

constexpr int64_t kN = 256, kBytes = kN * 4;
const tensor::Shape kShape = tensor::Shape::array(tensor::Type::f32, {kN});

// x -> a -> b -> c -> y, copied from one to the next.
Program chain() {
  Program p;
  p.name = "chain";
  p.inputs.push_back({"x", "", kShape, BufferId(0), {}});
  p.outputs.push_back({"y", "", kShape, BufferId(4), {}});
  const char* names[] = {"x", "a", "b", "c", "y"};
  for (size_t i = 0; i < 5; ++i) {
    Buffer buffer{names[i], BufferKind::temporary, kBytes};
    if (i == 0 || i == 4) {
      buffer.kind = i == 0 ? BufferKind::input : BufferKind::output;
      buffer.number = 0;
    } else {
      buffer.offset_bytes = static_cast<int64_t>(i - 1) * kBytes;
      buffer.first_command = static_cast<int64_t>(i) - 1;
      buffer.last_command = static_cast<int64_t>(i);
      p.pool_blocks.push_back({buffer.offset_bytes, kBytes});
    }
    p.buffers.push_back(buffer);
    p.constants.emplace_back();
    if (i == 0) continue;
    p.commands.push_back(program::Copy{{BufferId(i - 1), 0, kShape}, {BufferId(i), 0, kShape}});
    p.command_info.push_back({names[i], "copy"});
  }
  p.memory = {2 * kBytes, 3 * kBytes, 3 * kBytes};
  return p;
}

TEST(pooled_run, GivesBackAtTheLastUse) {
  EXPECT_EQ(pool_peak_bytes(chain()), 2 * kBytes);
  Program apart = chain();
  apart.pool_blocks.clear();
  EXPECT_EQ(pool_peak_bytes(apart), 3 * kBytes);  // static: the plan's
}

// A buffer inside a block keeps its offset there.
TEST(pooled_run, BlocksMayHaveSeveralBuffers) {
  Program p = chain();
  p.pool_blocks = {{0, 2 * kBytes}, {2 * kBytes, kBytes}};
  EXPECT_EQ(pool_peak_bytes(p), 3 * kBytes);
}

TEST(pooled_run, RunsAreRightAgainAndAgain) {
  Workers workers(1);
  CpuDevice cpu(workers);
  auto executable = Executable::load(chain(), cpu.device());
  ASSERT_TRUE(executable) << executable.error().message;
  auto context = (*executable)->make_context();
  ASSERT_TRUE(context) << context.error().message;
  EXPECT_EQ((*context)->arena_bytes(), 0);
  alignas(64) float in[kN], out[kN];
  for (int64_t i = 0; i < kN; ++i) in[i] = static_cast<float>(i);
  ASSERT_TRUE((*context)->bind_input(0, in));
  ASSERT_TRUE((*context)->bind_output(0, out));
  for (int run = 0; run < 3; ++run) {
    (*context)->set_profile(run == 1);
    std::fill_n(out, kN, -1.0f);
    const Status status = (*context)->run();
    ASSERT_TRUE(status) << status.error().message;
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(out[i], in[i]);
    EXPECT_EQ((*context)->arena_bytes(), 2 * kBytes);
  }
  EXPECT_EQ((*context)->profile()[3].time.count, 1);
}

TEST(pooled_run, BlocksThatDoNotHoldTheTemporariesAreRefused) {
  Workers workers(1);
  CpuDevice cpu(workers);
  for (const std::vector<program::PoolBlock>& blocks :
       {std::vector<program::PoolBlock>{{0, kBytes}, {kBytes, kBytes}},
        {{0, kBytes}, {kBytes, kBytes}, {2 * kBytes, kBytes - 64}},
        {{0, 2 * kBytes}, {kBytes, 2 * kBytes}},
        {{32, 3 * kBytes}}}) {
    Program p = chain();
    p.pool_blocks = blocks;
    EXPECT_FALSE(Executable::load(std::move(p), cpu.device()));
  }
}

// Copies of three inputs with distinct contents, from value to value at random, in prefixes; the
// last values are outputs. For every value it is known which input it comes from.
struct Copies {
  Program program;
  std::vector<int> of_input;  // by output
};

Copies random_copies(std::mt19937& random) {
  constexpr size_t kInputs = 3, kTemporaries = 40, kOutputs = 4;
  Copies made;
  Program& p = made.program;
  p.name = "copies";
  std::vector<int64_t> elems;
  std::vector<int> origin;
  auto shape = [](int64_t n) { return tensor::Shape::array(tensor::Type::f32, {n}); };
  int64_t end = 0;
  for (size_t i = 0; i < kInputs + kTemporaries + kOutputs; ++i) {
    const bool input = i < kInputs, output = i >= kInputs + kTemporaries;
    // Mostly of late values: chains with branches.
    size_t from = input ? 0 : random() % i;
    if (!input && random() % 4 != 0) from = i - 1 - random() % std::min<size_t>(i, 4);
    if (output) from = std::min(from, kInputs + kTemporaries - 1);
    const int64_t n = input ? 1024 : 1 + static_cast<int64_t>(random() % elems[from]);
    elems.push_back(input || output ? n : std::max<int64_t>(n, elems[from] / 2));
    origin.push_back(input ? static_cast<int>(i) : origin[from]);
    Buffer buffer{"b" + std::to_string(i), BufferKind::temporary, elems[i] * 4};
    if (input || output) {
      buffer.kind = input ? BufferKind::input : BufferKind::output;
      buffer.number = static_cast<int64_t>(input ? i : i - kInputs - kTemporaries);
      (input ? p.inputs : p.outputs).push_back({buffer.name, "", shape(elems[i]), BufferId(i), {}});
    } else {
      buffer.offset_bytes = end;
      p.pool_blocks.push_back({end, (buffer.bytes + 63) / 64 * 64});
      end += p.pool_blocks.back().bytes;
      buffer.first_command = buffer.last_command = static_cast<int64_t>(i - kInputs);
    }
    p.buffers.push_back(buffer);
    p.constants.emplace_back();
    if (input) continue;
    if (output) made.of_input.push_back(origin[i]);
    Buffer& read = p.buffers[from];
    if (read.kind == BufferKind::temporary)
      read.last_command = static_cast<int64_t>(p.commands.size());
    p.commands.push_back(
        program::Copy{{BufferId(from), 0, shape(elems[i])}, {BufferId(i), 0, shape(elems[i])}});
    p.command_info.push_back({buffer.name, "copy"});
  }
  p.memory = {0, end, end};
  return made;
}

// A context of such a program with its own ports.
struct CopiesRun {
  CopiesRun(const Copies& made, Executable& executable) : copies(made) {
    auto opened = executable.make_context();
    EXPECT_TRUE(opened) << opened.error().message;
    context = std::move(*opened);
    for (size_t i = 0; i < 3; ++i) in.emplace_back(1024, static_cast<float>(i + 1));
    for (const program::Port& port : copies.program.outputs)
      out.emplace_back(static_cast<size_t>(port.shape.elems()));
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_TRUE(context->bind_input(static_cast<int64_t>(i), in[i].data()));
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_TRUE(context->bind_output(static_cast<int64_t>(i), out[i].data()));
  }
  // Runs once; returns the error, or which output is wrong; empty if all is right.
  std::string run() {
    for (auto& one : out) std::fill(one.begin(), one.end(), -1.0f);
    if (const Status status = context->run(); !status) return status.error().message;
    for (size_t i = 0; i < out.size(); ++i)
      for (float got : out[i])
        if (got != static_cast<float>(copies.of_input[i] + 1)) return "wrong";
    return "";
  }
  const Copies& copies;
  std::unique_ptr<Context> context;
  std::vector<std::vector<float>> in, out;
};

// Three runs each, so that the pool starts with blocks of the first run; with seeds that run
// nothing before a wait, and with others, which need fewer waits.
TEST(pooled_run, OnStreamsBlocksAreTakenAgainOnlyBehindTheirLastUses) {
  std::mt19937 random(5);
  int64_t planned = 0, waited[2] = {}, on_streams = 0;
  for (int round = 0; round < 200; ++round) {
    const Copies copies = random_copies(random);
    const Program& p = copies.program;
    const program::StreamPlan plan =
        program::plan_streams(p, p.commands, program::rough_ns(p, p.commands));
    for (const int odd : {0, 1}) {
      VirtualOptions options;
      options.streams = 4;
      options.seed = static_cast<uint64_t>(2 * round + odd);
      VirtualDevice device(options);
      auto executable = Executable::load(Program(p), device.device());
      ASSERT_TRUE(executable) << executable.error().message;
      CopiesRun one(copies, **executable);
      for (int run = 0; run < 3; ++run) ASSERT_EQ(one.run(), "") << round << " " << run;
      EXPECT_LE(one.context->arena_bytes(), pool_peak_bytes(p, 4));
      EXPECT_LT(one.context->arena_bytes(), p.memory.plan_bytes);
      EXPECT_EQ(device.counts().races, 0);
      waited[odd] += device.counts().waits;
    }
    on_streams += plan.streams > 1;
    for (const auto& waits : plan.waits) planned += 3 * static_cast<int64_t>(waits.size());
  }
  EXPECT_GT(on_streams, 100);
  EXPECT_GT(waited[0], planned);  // some for memory alone
  EXPECT_GT(waited[1], planned);
  EXPECT_LT(waited[1] - planned, (waited[0] - planned) * 9 / 10);
}

// The same without callbacks: events are queried instead.
TEST(pooled_run, OnStreamsOfADeviceThatDoesNotCall) {
  std::mt19937 random(6);
  for (int round = 0; round < 50; ++round) {
    const Copies copies = random_copies(random);
    VirtualOptions options;
    options.seed = static_cast<uint64_t>(round);
    VirtualDevice device(options);
    heddle_hal hal = device.device().hal();
    hal.call_on = nullptr;
    auto silent = Device::make(&hal);
    ASSERT_TRUE(silent);
    auto executable = Executable::load(Program(copies.program), *silent);
    ASSERT_TRUE(executable) << executable.error().message;
    CopiesRun one(copies, **executable);
    for (int run = 0; run < 3; ++run) ASSERT_EQ(one.run(), "") << round << " " << run;
    EXPECT_EQ(device.counts().calls + device.counts().races, 0);
  }
}

TEST(streams, ContextsOfSeveralThreadsShareThem) {
  std::mt19937 random(7);
  for (const int64_t streams : {3, 6, 100}) {
    Copies copies = random_copies(random);
    while (program::plan_streams(copies.program, copies.program.commands,
                                 program::rough_ns(copies.program, copies.program.commands))
               .streams < 2)
      copies = random_copies(random);
    VirtualOptions options;
    options.streams = streams;
    options.seed = static_cast<uint64_t>(streams);
    VirtualDevice device(options);
    auto executable = Executable::load(Program(copies.program), device.device());
    ASSERT_TRUE(executable) << executable.error().message;
    for (int again = 0; again < 2; ++again) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
          CopiesRun one(copies, **executable);
          for (int run = 0; run < 10; ++run) EXPECT_EQ(one.run(), "") << streams;
        });
      for (std::thread& thread : threads) thread.join();
    }
    const StreamCounts counts = device.device().streams()->counts();
    EXPECT_EQ(counts.lent + device.device().events()->counts().lent, 0);
    EXPECT_LE(counts.made, streams);
    EXPECT_GT(counts.reused + counts.shared, 0);
    EXPECT_EQ(device.counts().live_streams, counts.made);
    EXPECT_EQ(device.counts().races, 0);
  }
}

TEST(streams, ARunBehindOneWithALostStreamIsRight) {
  std::mt19937 random(8);
  int lost = 0;
  for (int round = 0; round < 40; ++round) {
    const Copies copies = random_copies(random);
    VirtualOptions options;
    options.streams = 8;
    options.seed = static_cast<uint64_t>(round);
    options.faults.lost_stream = 1 + round % 4;
    VirtualDevice device(options);
    auto executable = Executable::load(Program(copies.program), device.device());
    ASSERT_TRUE(executable) << executable.error().message;
    CopiesRun one(copies, **executable);
    const std::string first = one.run();
    if (first != "") {
      EXPECT_NE(first.find("is lost"), std::string::npos) << first;
      EXPECT_EQ(device.device().streams()->counts().lost, 1);
      ++lost;
    }
    EXPECT_EQ(one.run(), "") << round;
  }
  EXPECT_GT(lost, 10);
}

}  // namespace
}  // namespace heddle::runtime
