// Loops, branches and updates on the executor, with host functions that compute predicates.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include "program/verify.h"
#include "runtime/cpu_device.h"
#include "runtime/executor.h"

namespace heddle::runtime {
namespace {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::Command;
using program::KernelId;
using program::Program;
using program::Region;
using program::RegionId;
using program::View;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kTasks = 2, kN = kTasks * 16;

std::vector<uint8_t> read_object() {
  std::ifstream file(HEDDLE_SOURCE_DIR "/src/runtime/testdata/kernels.o", std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

// A program with one output y, after the commands that a test adds.
struct Maker {
  Program p;
  int64_t arena_end = 0;
  Shape floats = Shape::array(Type::f32, {kN}), pred = Shape::scalar(Type::pred);

  Maker() {
    p.name = "control";
    p.object = read_object();
    p.kernels = {{"add", {}, {{"add_p0", kTasks, true}}},
                 {"scale", {}, {{"scale_p0", kTasks, true}}}};
  }
  View port(const char* name, bool input, const Shape& shape) {
    auto& ports = input ? p.inputs : p.outputs;
    Buffer b{name, input ? BufferKind::input : BufferKind::output, shape.bytes()};
    b.number = std::ssize(ports);
    ports.push_back({name, "", shape, BufferId(p.buffers.size()), {}});
    return add_buffer(b, shape);
  }
  // `at`: offset of an existing temporary to overlap; -1: separate memory.
  View temporary(const char* name, const Shape& shape, int64_t at = -1) {
    Buffer b{name, BufferKind::temporary, shape.bytes()};
    b.offset_bytes = at >= 0 ? at : arena_end;
    b.first_command = 0;
    b.last_command = 1000;
    if (at < 0) arena_end += (b.bytes + 63) / 64 * 64;
    return add_buffer(b, shape);
  }
  View add_buffer(const Buffer& b, const Shape& shape) {
    p.buffers.push_back(b);
    p.constants.emplace_back();
    return {BufferId(p.buffers.size() - 1), 0, shape};
  }
  int64_t offset(const View& view) { return p.buffers[view.buffer.index()].offset_bytes; }
  Command launch(size_t kernel, std::vector<View> arguments) {
    program::Launch launch{KernelId(kernel), std::move(arguments), {}};
    launch.inputs = std::ssize(launch.arguments) - 1;
    launch.outputs = 1;
    launch.in_place = {kernel == 1 ? 0 : -1};
    return launch;
  }
  RegionId region(std::vector<Command> commands) {
    Region made{std::move(commands), {}};
    for (size_t i = 0; i < made.commands.size(); ++i)
      made.info.push_back({"inner" + std::to_string(i), "inner"});
    p.regions.push_back(std::move(made));
    return RegionId(p.regions.size() - 1);
  }
  void add(Command command, const char* name) {
    p.commands.push_back(std::move(command));
    p.command_info.push_back({name, name});
  }
  Program take() {
    p.memory = {0, arena_end, arena_end};
    return std::move(p);
  }
};

// y = 2.5^trips * x by a loop whose state is swapped.
Program swapping_loop() {
  Maker m;
  const View x = m.port("x", true, m.floats), y = m.port("y", false, m.floats);
  const View again = m.temporary("again", m.pred), start = m.temporary("start", m.floats);
  const View state = m.temporary("state", m.floats, m.offset(start));
  const View next = m.temporary("next", m.floats);
  m.add(program::Copy{x, start}, "start");
  program::Loop loop;
  loop.condition = m.region({program::HostCall{"again", "", {}, {again}}});
  loop.body = m.region({m.launch(1, {state, next})});
  loop.predicate = again;
  loop.carried = {{start, state, next, /*swapped=*/true}};
  m.add(std::move(loop), "loop");
  m.add(program::Copy{state, y}, "result");
  return m.take();
}

struct Machine {
  explicit Machine(int threads = 1) : workers(threads), cpu(workers) {}
  std::unique_ptr<Context> context(Program program, const HostFunctions& functions) {
    const Status status = program::verify(program);
    EXPECT_TRUE(status) << status.error().message;
    auto executable = Executable::load(std::move(program), cpu.device(), functions);
    EXPECT_TRUE(executable) << executable.error().message;
    auto context = (*executable)->make_context();
    EXPECT_TRUE(context) << context.error().message;
    return std::move(*context);
  }
  Workers workers;
  CpuDevice cpu;
};

// "again": returns true `trips` times, then false, repeatedly; fails at trip `fault`.
struct Again {
  int64_t trips = 0, fault = -1, asked = 0;
  HostFunctions functions() {
    auto call = [this](std::span<const HostArgument>, std::span<const HostResult> r) -> Status {
      if (asked == fault) return user_error("trip {}", asked);
      const bool again = asked++ < trips;
      *static_cast<uint8_t*>(r[0].data) = again;
      if (!again) asked = 0;
      return {};
    };
    return {{"again", [call](const std::string&) { return Result<HostCallable>(call); }}};
  }
};

TEST(control, SwappedStatesComeOutWhereTheyWentIn) {
  Again again;
  Machine machine;
  auto context = machine.context(swapping_loop(), again.functions());
  std::vector<float> x(kN, 1), y(kN);
  ASSERT_TRUE(context->bind_input(0, x.data()));
  ASSERT_TRUE(context->bind_output(0, y.data()));
  for (const int64_t trips : {0, 1, 2, 5, 4, 0, 3}) {
    again.trips = trips;
    ASSERT_TRUE(context->run());
    EXPECT_FLOAT_EQ(y[kN - 1], static_cast<float>(std::pow(2.5, trips))) << trips;
  }
}

TEST(control, AFaultInsideALoopLeavesNothingBehind) {
  Again again;
  Machine machine;
  auto context = machine.context(swapping_loop(), again.functions());
  std::vector<float> x(kN, 1), y(kN);
  ASSERT_TRUE(context->bind_input(0, x.data()));
  ASSERT_TRUE(context->bind_output(0, y.data()));
  again.trips = 4;
  again.fault = 3;  // after an odd number of trips
  const Status status = context->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "inner0: trip 3");
  again.fault = -1;
  again.asked = 0;
  ASSERT_TRUE(context->run());
  EXPECT_FLOAT_EQ(y[0], 39.0625F);
}

TEST(control, ProfilesAddUpTrips) {
  Again again;
  Machine machine;
  auto context = machine.context(swapping_loop(), again.functions());
  std::vector<float> x(kN, 1), y(kN);
  ASSERT_TRUE(context->bind_input(0, x.data()));
  ASSERT_TRUE(context->bind_output(0, y.data()));
  again.trips = 6;
  context->set_profile(true);
  ASSERT_TRUE(context->run());
  ASSERT_TRUE(context->run());
  const std::vector<CommandProfile> profile = context->profile();
  ASSERT_EQ(profile.size(), 5u);  // start, loop, its condition, its body, result
  const int64_t counts[] = {2, 2, 14, 12, 2};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(profile[i].time.count, counts[i]) << i;
  EXPECT_EQ(profile[1].info->name, "loop");
  EXPECT_EQ(profile[4].info->name, "result");
  EXPECT_FLOAT_EQ(y[0], 244.140625F);
}

// y = x, 2.5x or x + x.
Program branch(Type type) {
  Maker m;
  const View x = m.port("x", true, m.floats), s = m.port("s", true, Shape::scalar(type));
  const View y = m.port("y", false, m.floats);
  program::Branch branch;
  branch.selector = s;
  branch.regions = {m.region({program::Copy{x, y}}), m.region({m.launch(1, {x, y})})};
  if (type != Type::pred) branch.regions.push_back(m.region({m.launch(0, {x, x, y})}));
  m.add(std::move(branch), "branch");
  return m.take();
}

TEST(control, BranchesGoByPredsAndNumbers) {
  Machine machine;
  std::vector<float> x(kN, 2), y(kN);
  auto run = [&](Type type, int64_t selector) {
    auto context = machine.context(branch(type), {});
    EXPECT_TRUE(context->bind_input(0, x.data()));
    EXPECT_TRUE(context->bind_input(1, &selector));  // little-endian
    EXPECT_TRUE(context->bind_output(0, y.data()));
    EXPECT_TRUE(context->run());
    return y[0];
  };
  EXPECT_EQ(run(Type::pred, 1), 2);
  EXPECT_EQ(run(Type::pred, 0), 5);
  for (const Type type : {Type::s8, Type::u16, Type::s32, Type::s64, Type::u64}) {
    EXPECT_EQ(run(type, 0), 2);
    EXPECT_EQ(run(type, 1), 5);
    EXPECT_EQ(run(type, 2), 4);
    EXPECT_EQ(run(type, 3), 4);  // the last one
    EXPECT_EQ(run(type, -1), 4);
  }
}

TEST(control, UpdatesPutABoxWhereItFits) {
  const Shape all = Shape::array(Type::s16, {3, 4, 5, 2}),
              box = Shape::array(Type::s16, {2, 3, 2, 2});
  const int64_t tries[][4] = {{0, 0, 0, 0}, {1, 1, 3, 0}, {-7, 9, 2, 9}, {1, 0, 100, -100}};
  Machine machine;
  for (const auto& starts : tries) {
    Maker m;
    const View x = m.port("x", true, all), b = m.port("b", true, box);
    std::vector<View> at;
    for (int i = 0; i < 4; ++i) at.push_back(m.port("at", true, Shape::scalar(Type::s64)));
    const View y = m.port("y", false, all);
    const View start = m.temporary("start", all);
    const View state = m.temporary("state", all, m.offset(start));
    m.add(program::Copy{x, start}, "start");
    m.add(program::Update{start, b, state, at}, "update");
    m.add(program::Copy{state, y}, "result");
    auto context = machine.context(m.take(), {});
    std::vector<int16_t> from(120), put(24), to(120), want;
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int16_t>(i);
    for (size_t i = 0; i < put.size(); ++i) put[i] = static_cast<int16_t>(1000 + i);
    ASSERT_TRUE(context->bind_input(0, from.data()));
    ASSERT_TRUE(context->bind_input(1, put.data()));
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(context->bind_input(2 + i, &starts[i]));
    ASSERT_TRUE(context->bind_output(0, to.data()));
    ASSERT_TRUE(context->run());
    want = from;
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t digits[4] = {i / 12, i / 4 % 3, i / 2 % 2, i % 2};
      int64_t place = 0;
      for (int d = 0; d < 4; ++d)
        place = place * all.dim(d) + digits[d] +
                std::clamp<int64_t>(starts[d], 0, all.dim(d) - box.dim(d));
      want[static_cast<size_t>(place)] = put[static_cast<size_t>(i)];
    }
    EXPECT_EQ(to, want);
  }
}

// y = x except for row at[0], which becomes 2.5 f by a launch; between launch and update, commands
// added by a test.
Program boxed(bool reads_array, bool moves_start) {
  Maker m;
  const Shape all = Shape::array(Type::f32, {3, kN}), box = Shape::array(Type::f32, {1, kN});
  const Shape number = Shape::scalar(Type::s64);
  const View x = m.port("x", true, all), f = m.port("f", true, m.floats);
  const View at = m.port("at", true, number), other = m.port("other", true, number);
  const View y = m.port("y", false, all), z = m.port("z", false, m.floats);
  const View start = m.temporary("start", all);
  const View state = m.temporary("state", all, m.offset(start));
  const View made = m.temporary("made", box), place = m.temporary("place", number);
  View first_row = start;
  first_row.shape = m.floats;
  m.add(program::Copy{x, start}, "start");
  m.add(program::Copy{at, place}, "place");
  m.add(m.launch(1, {f, {made.buffer, 0, m.floats}}), "made");
  m.add(program::Copy{reads_array ? first_row : f, z}, "seen");
  if (moves_start) m.add(program::Copy{other, place}, "moved");
  m.add(program::Update{start, made, state, {place, at}}, "update");
  m.add(program::Copy{state, y}, "result");
  return m.take();
}

TEST(control, ALaunchStoresABoxWhereItBelongs) {
  Machine machine;
  for (const bool reads_array : {false, true}) {
    for (const bool moves_start : {false, true}) {
      auto context = machine.context(boxed(reads_array, moves_start), {});
      std::vector<float> x(3 * kN, 1), f(kN, 2), y(3 * kN), z(kN);
      const int64_t at = 0, other = 7;
      ASSERT_TRUE(context->bind_input(0, x.data()));
      ASSERT_TRUE(context->bind_input(1, f.data()));
      ASSERT_TRUE(context->bind_input(2, &at));
      ASSERT_TRUE(context->bind_input(3, &other));
      ASSERT_TRUE(context->bind_output(0, y.data()));
      ASSERT_TRUE(context->bind_output(1, z.data()));
      context->set_profile(true);
      ASSERT_TRUE(context->run());
      const size_t row = moves_start ? 2 : 0;
      for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], i / kN == row ? 5 : 1) << i;
      EXPECT_EQ(z[0], reads_array ? 1 : 2);
      int64_t updates = 0;
      for (const CommandProfile& one : context->profile())
        if (one.info->name == "update") updates += one.time.count;
      EXPECT_EQ(updates, reads_array || moves_start ? 1 : 0);
    }
  }
}

TEST(control, PiecesGoToTheirPlaces) {
  Maker m;
  const View a = m.port("a", true, Shape::array(Type::s16, {3, 2, 2}));
  const View b = m.port("b", true, Shape::array(Type::s16, {3, 1, 2}));
  const View y = m.port("y", false, Shape::array(Type::s16, {3, 4, 2}));
  m.add(program::Concatenate{{b, a, b}, y, 1}, "concatenate");
  Machine machine;
  auto context = machine.context(m.take(), {});
  const std::vector<int16_t> x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, z{-1, -2, -3, -4, -5, -6};
  std::vector<int16_t> got(24);
  ASSERT_TRUE(context->bind_input(0, x.data()));
  ASSERT_TRUE(context->bind_input(1, z.data()));
  ASSERT_TRUE(context->bind_output(0, got.data()));
  ASSERT_TRUE(context->run());
  EXPECT_EQ(got, (std::vector<int16_t>{-1, -2, 0,  1,  2,  3,  -1, -2, -3, -4, 4,  5,
                                       6,  7,  -3, -4, -5, -6, 8,  9,  10, 11, -5, -6}));
}

// Printed, not checked, since machines differ. The budget is 100 ns per trip.
TEST(control, PrintsHostTimePerTrip) {
  Again again;
  Machine machine;
  auto context = machine.context(swapping_loop(), again.functions());
  std::vector<float> x(kN, 0), y(kN);
  ASSERT_TRUE(context->bind_input(0, x.data()));
  ASSERT_TRUE(context->bind_output(0, y.data()));
  again.trips = 100'000;
  ASSERT_TRUE(context->run());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(context->run());
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  printf("%.1f ns a trip with a host call, a launch and a swap\n",
         took.count() / static_cast<double>(again.trips));
}

}  // namespace
}  // namespace heddle::runtime
