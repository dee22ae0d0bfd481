#include "runtime/pooled_run.h"

#include <gtest/gtest.h>

#include "base/trace.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"

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

// What lives inside one block keeps its place there.
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

}  // namespace
}  // namespace heddle::runtime
