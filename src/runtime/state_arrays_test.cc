#include "runtime/state_arrays.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/cpu_device.h"
#include "runtime/executor.h"

namespace heddle::runtime {
namespace {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::Program;
using tensor::Shape;

// Output `seen` returns the state, u64[1], which is then incremented.
Program counting() {
  const Shape shape = Shape::array(tensor::Type::u64, {1});
  Program p;
  p.name = "counting";
  const BufferId in(size_t{0}), out(size_t{1}), seen(size_t{2}), next(size_t{3});
  p.buffers = {{"in", BufferKind::input, 8, 0, 0},
               {"out", BufferKind::output, 8, 0, 1, in},
               {"seen", BufferKind::output, 8, 0, 0},
               {"next", BufferKind::temporary, 8, 0, -1, {}, 1, 2}};
  p.constants.resize(4);
  p.inputs = {{"in", "", shape, in, {}}};
  p.outputs = {{"seen", "", shape, seen, {}}, {"out", "", shape, out, {}}};
  p.states = {{{5, 0, 0, 0, 0, 0, 0, 0}}};
  p.commands = {program::Copy{{in, 0, shape}, {seen, 0, shape}},
                program::HostCall{"next", "", {{seen, 0, shape}}, {{next, 0, shape}}},
                program::Copy{{next, 0, shape}, {out, 0, shape}}};
  p.command_info = {{"seen", "copy"}, {"next", "add"}, {"out", "copy"}};
  p.memory = {0, 64, 64};
  return p;
}

HostFunctions functions() {
  return {{"next", [](const std::string&) -> Result<HostCallable> {
             return HostCallable([](std::span<const HostArgument> arguments,
                                    std::span<const HostResult> results) -> Status {
               *static_cast<uint64_t*>(results[0].data) =
                   *static_cast<const uint64_t*>(arguments[0].data) + 1;
               return {};
             });
           }}};
}

class States : public testing::Test {
 protected:
  std::shared_ptr<Executable> load(Program program = counting()) {
    auto loaded = Executable::load(std::move(program), device_.device(), functions());
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message);
    return *loaded;
  }
  static std::unique_ptr<Context> context(const std::shared_ptr<Executable>& executable) {
    auto made = executable->make_context();
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return std::move(*made);
  }
  // The value seen by one run.
  static uint64_t run(Context& context) {
    alignas(64) uint64_t seen = 0;
    EXPECT_TRUE(context.bind_output(0, &seen));
    const Status ran = context.run();
    EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
    return seen;
  }
  Workers workers_{1};
  CpuDevice device_{workers_};
};

TEST_F(States, GoOnInAllContexts) {
  const auto executable = load();
  const auto one = context(executable), other = context(executable);
  EXPECT_EQ(run(*one), 5u);
  EXPECT_EQ(run(*other), 6u);
  EXPECT_EQ(run(*one), 7u);
  EXPECT_EQ(run(*context(load())), 5u) << "loaded again it begins anew";
}

TEST_F(States, MayBeThoseOfSeveralPrograms) {
  const auto shared = std::make_shared<StateArrays>();
  for (uint64_t wanted : {5u, 6u, 7u}) {
    const auto executable = load();
    ASSERT_TRUE(executable->use_states(shared));
    EXPECT_EQ(run(*context(executable)), wanted);
  }
  Program changed = counting();
  changed.states[0].start[0] = 9;
  const Status refused = load(std::move(changed))->use_states(shared);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("counting: its 1 states are not those"),
            std::string::npos);
}

TEST_F(States, RunsOfThreadsTakeTurns) {
  constexpr int kThreads = 4, kRuns = 200;
  const auto executable = load();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      const auto mine = context(executable);
      for (int i = 0; i < kRuns; ++i) run(*mine);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(run(*context(executable)), 5u + kThreads * kRuns);
}

TEST_F(States, WaitingEndsWhenItIsCancelled) {
  StateArrays states;
  Cancellation cancellation;
  std::unique_lock<std::timed_mutex> first, second;
  EXPECT_TRUE(states.take_turn(first, cancellation));
  std::thread asks([&] { cancellation.ask(); });
  EXPECT_FALSE(states.take_turn(second, cancellation));
  asks.join();
  first.unlock();
  EXPECT_TRUE(states.take_turn(second, cancellation));
}

}  // namespace
}  // namespace heddle::runtime
