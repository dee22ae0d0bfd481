#include "runtime/executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/trace.h"
#include "program/file.h"
#include "runtime/cpu_device.h"
#include "target/target.h"

namespace heddle::runtime {
namespace {

using program::Buffer;
using program::BufferId;
using program::BufferKind;
using program::KernelId;
using program::Launch;
using program::Program;
using program::View;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kTasks = 8, kN = kTasks * 16;

Shape vector_shape(int64_t n) { return Shape::array(Type::f32, {n}); }

std::vector<uint8_t> read_object() {
  std::ifstream file(HEDDLE_SOURCE_DIR "/src/runtime/testdata/kernels.o", std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

// Makes small programs over testdata/kernels.c.
struct Maker {
  Program p;
  int64_t constant_end = 0, arena_end = 0;

  explicit Maker(const char* name) {
    p.name = name;
    p.object = read_object();
    for (const char* kernel : {"add", "scale", "move", "table", "nothing"})
      p.kernels.push_back({kernel, {}, {{std::string(kernel) + "_p0", kTasks, false}}});
    p.kernels.push_back({"total", {}, {{"total_p0", kTasks, false}, {"total_p1", 1, true}}, 64});
  }
  BufferId buffer(const char* name, BufferKind kind, int64_t elems, Literal value = {}) {
    Buffer b{name, kind, elems * 4};
    if (kind == BufferKind::input) {
      b.number = static_cast<int64_t>(p.inputs.size());
      p.inputs.push_back({name, "", vector_shape(elems), BufferId(p.buffers.size()), {}});
    } else if (kind == BufferKind::output) {
      b.number = static_cast<int64_t>(p.outputs.size());
      p.outputs.push_back({name, "", vector_shape(elems), BufferId(p.buffers.size()), {}});
    } else {
      int64_t& end = kind == BufferKind::constant ? constant_end
                     : kind == BufferKind::once   ? p.once_bytes
                                                  : arena_end;
      b.offset_bytes = end;
      end += (b.bytes + 63) / 64 * 64;
      b.first_command = 0;
      b.last_command = 1000;
    }
    p.buffers.push_back(b);
    p.constants.push_back(std::move(value));
    return BufferId(p.buffers.size() - 1);
  }
  View whole(BufferId id) { return {id, 0, vector_shape(p.buffers[id.index()].bytes / 4)}; }
  void launch(const char* kernel, const std::vector<BufferId>& inputs,
              const std::vector<BufferId>& others, int64_t outputs = 1,
              std::vector<int64_t> dims = {}, bool once = false) {
    Launch launch;
    for (size_t k = 0; k < p.kernels.size(); ++k)
      if (p.kernels[k].name == kernel) launch.kernel = KernelId(k);
    for (BufferId id : inputs) launch.arguments.push_back(whole(id));
    for (BufferId id : others) launch.arguments.push_back(whole(id));
    launch.dims = std::move(dims);
    launch.inputs = static_cast<int64_t>(inputs.size());
    launch.outputs = outputs;
    add(std::move(launch), kernel, once);
  }
  void add(program::Command command, const char* name, bool once = false) {
    (once ? p.once : p.commands).push_back(std::move(command));
    (once ? p.once_info : p.command_info).push_back({name, name});
  }
  Program take() {
    p.memory = {0, arena_end, arena_end};
    return std::move(p);
  }
};

// 64-byte aligned floats.
struct Floats {
  explicit Floats(int64_t n, float first = 0) : literal(vector_shape(n)) {
    for (int64_t i = 0; i < n; ++i) data()[i] = first + static_cast<float>(i);
  }
  float* data() { return literal.mutable_values<float>().data(); }
  float operator[](int64_t i) { return data()[i]; }
  Literal literal;
};

struct Machine {
  explicit Machine(int threads = 2) : workers(threads), cpu(workers) {}
  std::shared_ptr<Executable> load(Program program, const HostFunctions& functions = {}) {
    auto executable = Executable::load(std::move(program), cpu.device(), functions);
    EXPECT_TRUE(executable) << executable.error().message;
    return executable ? *executable : nullptr;
  }
  std::unique_ptr<Context> context(const std::shared_ptr<Executable>& executable) {
    auto context = executable->make_context();
    EXPECT_TRUE(context) << context.error().message;
    return std::move(*context);
  }
  Workers workers;
  CpuDevice cpu;
};

void expect_ok(const Status& status) { EXPECT_TRUE(status) << status.error().message; }

// y = 2.5 (x + w), total = sum y
Program chain_program() {
  Maker m("chain");
  const BufferId x = m.buffer("x", BufferKind::input, kN);
  const BufferId y = m.buffer("y", BufferKind::output, kN);
  const BufferId total = m.buffer("total", BufferKind::output, 1);
  const BufferId w = m.buffer("w", BufferKind::constant, kN, Floats(kN, 10).literal);
  const BufferId t = m.buffer("t", BufferKind::temporary, kN);
  const BufferId parts = m.buffer("parts", BufferKind::temporary, kTasks);
  m.launch("add", {x, w}, {t});
  m.launch("scale", {t}, {y});
  m.launch("total", {y}, {total, parts}, 1, {kTasks});
  return m.take();
}

void check_chain(Context& context, float first) {
  Floats x(kN, first), y(kN), total(1);
  expect_ok(context.bind_input(0, x.data()));
  expect_ok(context.bind_output(0, y.data()));
  expect_ok(context.bind_output(1, total.data()));
  expect_ok(context.run());
  float sum = 0;
  for (int64_t i = 0; i < kN; ++i) {
    ASSERT_EQ(y[i], 2.5f * (x[i] + static_cast<float>(10 + i)));
    sum += y[i];
  }
  EXPECT_EQ(total[0], sum);  // small integers and halves: exact in any order
}

TEST(executor, RunsAChain) {
  for (int threads : {1, 2, 3}) {
    Machine machine(threads);
    auto context = machine.context(machine.load(chain_program()));
    for (int run = 0; run < 3; ++run) check_chain(*context, static_cast<float>(run));
  }
}

TEST(executor, ContextsRunSideBySide) {
  Machine machine(2);
  auto executable = machine.load(chain_program());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      auto context = machine.context(executable);
      for (int run = 0; run < 50; ++run) check_chain(*context, static_cast<float>(i * 100 + run));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(executor, UnalignedMemoryIsCopied) {
  Machine machine;
  auto context = machine.context(machine.load(chain_program()));
  Floats x(kN + 1, 3), y(kN + 1), total(1);
  expect_ok(context->bind_input(0, x.data() + 1));
  expect_ok(context->bind_output(0, y.data() + 1));
  expect_ok(context->bind_output(1, total.data()));
  expect_ok(context->run());
  EXPECT_EQ(y[0], 0.0f);
  for (int64_t i = 0; i < kN; ++i)
    EXPECT_EQ(y[i + 1], 2.5f * (x[i + 1] + static_cast<float>(10 + i)));
}

TEST(executor, BindingFaultsAreNamed) {
  Machine machine;
  auto context = machine.context(machine.load(chain_program()));
  Floats x(2 * kN), y(kN), total(1);
  EXPECT_FALSE(context->bind_input(1, x.data()));
  EXPECT_FALSE(context->bind_output(-1, x.data()));
  auto message = [&] {
    Status status = context->run();
    return status ? "" : status.error().message;
  };
  EXPECT_NE(message().find("input x is not bound"), std::string::npos);
  expect_ok(context->bind_input(0, x.data()));
  expect_ok(context->bind_output(0, y.data()));
  EXPECT_NE(message().find("output total is not bound"), std::string::npos);
  expect_ok(context->bind_output(1, x.data() + 16));
  EXPECT_NE(message().find("output total overlaps input x"), std::string::npos);
  expect_ok(context->bind_output(1, y.data() + kN - 1));
  EXPECT_NE(message().find("overlaps output y"), std::string::npos);
  expect_ok(context->bind_output(0, x.data()));  // not declared as an alias
  expect_ok(context->bind_output(1, total.data()));
  EXPECT_NE(message().find("overlaps"), std::string::npos);
  expect_ok(context->bind_output(0, x.data() + kN));  // touching is not overlapping
  expect_ok(context->run());
}

// counter' = 2.5 counter, in place
Program alias_program() {
  Maker m("alias");
  const BufferId in = m.buffer("counter", BufferKind::input, kN);
  const BufferId out = m.buffer("next", BufferKind::output, kN);
  m.p.buffers[out.index()].alias = in;
  m.launch("scale", {in}, {out});
  std::get<Launch>(m.p.commands[0]).in_place = {0};
  return m.take();
}

TEST(executor, DonatedInputIsUpdatedInPlace) {
  Machine machine;
  auto context = machine.context(machine.load(alias_program()));
  Floats counter(kN, 4);
  expect_ok(context->bind_input(0, counter.data()));
  expect_ok(context->bind_output(0, counter.data()));
  expect_ok(context->run());
  expect_ok(context->run());
  EXPECT_EQ(counter[0], 4 * 6.25f);
  EXPECT_EQ(counter[7], 11 * 6.25f);
}

TEST(executor, InputThatIsNotDonatedStaysAsItIs) {
  Machine machine;
  auto context = machine.context(machine.load(alias_program()));
  Floats counter(kN, 4), next(kN);
  expect_ok(context->bind_input(0, counter.data()));
  expect_ok(context->bind_output(0, next.data()));
  for (int run = 0; run < 2; ++run) {
    expect_ok(context->run());
    EXPECT_EQ(counter[1], 5.0f);
    EXPECT_EQ(next[1], 12.5f);
  }
}

// Outputs that are an input, a constant, and another output's copy.
TEST(executor, OutputsWithASource) {
  Maker m("sources");
  const BufferId x = m.buffer("x", BufferKind::input, kN);
  const BufferId y = m.buffer("y", BufferKind::output, kN);
  const BufferId w = m.buffer("w", BufferKind::constant, 4, Floats(4, 50).literal);
  m.launch("scale", {x}, {y});
  m.p.outputs.push_back({"x2", "", vector_shape(kN), {}, m.whole(x)});
  m.p.outputs.push_back({"w2", "", vector_shape(2), {}, {w, 8, vector_shape(2)}});
  m.p.outputs.push_back({"y2", "", vector_shape(kN), {}, m.whole(y)});
  Machine machine;
  auto context = machine.context(machine.load(m.take()));
  Floats in(kN, 1), out(kN), x2(kN), w2(2), y2(kN);
  expect_ok(context->bind_input(0, in.data()));
  expect_ok(context->bind_output(0, out.data()));
  expect_ok(context->bind_output(1, x2.data()));
  expect_ok(context->bind_output(2, w2.data()));
  expect_ok(context->bind_output(3, y2.data()));
  expect_ok(context->run());
  EXPECT_EQ(x2[5], 6.0f);
  EXPECT_EQ(w2[0], 52.0f);
  EXPECT_EQ(w2[1], 53.0f);
  EXPECT_EQ(y2[5], 15.0f);
}

// once: t = 2.5 w; packed = t + w.  run: y = x + packed.
Program once_program(Literal w_value) {
  Maker m("once");
  const BufferId x = m.buffer("x", BufferKind::input, kN);
  const BufferId y = m.buffer("y", BufferKind::output, kN);
  const BufferId w = m.buffer("w", BufferKind::constant, kN, std::move(w_value));
  const BufferId packed = m.buffer("packed", BufferKind::once, kN);
  const BufferId t = m.buffer("t", BufferKind::temporary, kN);
  m.launch("scale", {w}, {t}, 1, {}, true);
  m.launch("add", {t, w}, {packed}, 1, {}, true);
  m.launch("add", {x, packed}, {y});
  m.arena_end = 0;  // the run has no temporaries
  return m.take();
}

void check_once(Context& context) {
  Floats x(kN, 7), y(kN);
  expect_ok(context.bind_input(0, x.data()));
  expect_ok(context.bind_output(0, y.data()));
  expect_ok(context.run());
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(y[i], x[i] + 3.5f * static_cast<float>(20 + i));
}

TEST(executor, OnceSectionRunsOnce) {
  Machine machine;
  auto executable = machine.load(once_program(Floats(kN, 20).literal));
  EXPECT_GT(executable->program().constants[2].bytes(), 0);
  auto context = machine.context(executable);
  EXPECT_EQ(context->arena_bytes(), 0);
  check_once(*context);
  EXPECT_EQ(executable->program().constants[2].bytes(), 0);  // the weight was freed
  check_once(*context);
  check_once(*machine.context(executable));
}

TEST(executor, OnceSectionOnUnalignedConstants) {
  auto owner = std::make_shared<std::vector<float>>(kN + 32);
  size_t at = 0;
  while (reinterpret_cast<uintptr_t>(owner->data() + at) % 64 != 4) ++at;
  for (int64_t i = 0; i < kN; ++i)
    (*owner)[at + static_cast<size_t>(i)] = static_cast<float>(20 + i);
  std::weak_ptr<std::vector<float>> alive = owner;
  Literal value = Literal::view(vector_shape(kN), owner->data() + at, owner);
  owner.reset();
  Machine machine;
  auto executable = machine.load(once_program(std::move(value)));
  EXPECT_FALSE(alive.expired());
  expect_ok(executable->run_once());
  EXPECT_TRUE(alive.expired());
  check_once(*machine.context(executable));
}

// Gathered tables are read in place; constants read from end to end get an aligned copy.
TEST(executor, LargeTablesAreNotCopied) {
  constexpr int64_t kMany = (int64_t{1} << 18) + 64;
  const auto owner = std::make_shared<std::vector<float>>(kMany + 16, 3.0f);
  size_t at = 0;
  while (reinterpret_cast<uintptr_t>(owner->data() + at) % 64 != 4) ++at;
  for (const bool gathered : {true, false}) {
    Maker m("table");
    const BufferId x = m.buffer("x", BufferKind::input, kN);
    const BufferId w = m.buffer("w", BufferKind::constant, kMany,
                                Literal::view(vector_shape(kMany), owner->data() + at, owner));
    const BufferId y = m.buffer("y", BufferKind::output, kN);
    m.launch("add", {x, w}, {y});
    if (gathered) m.p.kernels[0].gathered = {1};
    Machine machine;
    const auto executable = machine.load(m.take());
    EXPECT_EQ(executable->program().constants[1].data() == owner->data() + at, gathered);
    auto context = machine.context(executable);
    Floats in(kN), out(kN);
    expect_ok(context->bind_input(0, in.data()));
    expect_ok(context->bind_output(0, out.data()));
    expect_ok(context->run());
    for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(out[i], in[i] + 3);
  }
}

TEST(executor, OnceResultsCanBeSaved) {
  const std::string path = testing::TempDir() + "/heddle_once_" + std::to_string(getpid());
  {
    Machine machine;
    auto executable = machine.load(once_program(Floats(kN, 20).literal));
    auto folded = executable->take_once();
    ASSERT_TRUE(folded) << folded.error().message;
    executable.reset();  // the results keep the memory alive
    expect_ok(program::save(*folded, path));
  }
  Machine machine;
  auto loaded = program::load(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->once.empty());
  check_once(*machine.context(machine.load(std::move(*loaded))));
  unlink(path.c_str());
}

TEST(executor, FirstRunsOfManyContextsShareTheOnceSection) {
  Machine machine(2);
  auto executable = machine.load(once_program(Floats(kN, 20).literal));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { check_once(*machine.context(executable)); });
  for (std::thread& thread : threads) thread.join();
}

Program host_program() {
  Maker m("host");
  const BufferId x = m.buffer("x", BufferKind::input, kN);
  const BufferId y = m.buffer("y", BufferKind::output, kN);
  const BufferId t = m.buffer("t", BufferKind::temporary, kN);
  m.launch("scale", {x}, {t});
  m.add(program::HostCall{"square", "text of it", {m.whole(t)}, {m.whole(y)}}, "host.1");
  return m.take();
}

TEST(executor, HostCalls) {
  int prepared = 0;
  HostFunctions functions;
  functions["square"] = [&](const std::string& text) -> Result<HostCallable> {
    ++prepared;
    EXPECT_EQ(text, "text of it");
    return
        [](std::span<const HostArgument> arguments, std::span<const HostResult> results) -> Status {
          const auto* from = static_cast<const float*>(arguments[0].data);
          auto* to = static_cast<float*>(results[0].data);
          if (from[0] < 0) return user_error("square of {}", from[0]);
          for (int64_t i = 0; i < arguments[0].shape->elems(); ++i) to[i] = from[i] * from[i];
          return {};
        };
  };
  Machine machine;
  auto context = machine.context(machine.load(host_program(), functions));
  Floats x(kN, 2), y(kN);
  expect_ok(context->bind_input(0, x.data()));
  expect_ok(context->bind_output(0, y.data()));
  expect_ok(context->run());
  expect_ok(context->run());
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(y[1], 7.5f * 7.5f);
  x.data()[0] = -1;
  Status status = context->run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "host.1: square of -2.5");
}

TEST(executor, LoadFaultsAreNamed) {
  Machine machine;
  auto message = [&](Program program) {
    auto executable = Executable::load(std::move(program), machine.cpu.device());
    return executable ? "" : executable.error().message;
  };
  EXPECT_NE(message(host_program()).find("no host function 'square'"), std::string::npos);
  Program missing = chain_program();
  missing.kernels[0].phases[0].symbol = "absent_p0";
  EXPECT_NE(message(std::move(missing)).find("no function 'absent_p0'"), std::string::npos);
  Program broken = chain_program();
  broken.object.resize(100);
  EXPECT_NE(message(std::move(broken)).find("object code"), std::string::npos);
  Program wrong = chain_program();
  wrong.commands.pop_back();
  wrong.command_info.pop_back();
  EXPECT_NE(message(std::move(wrong)).find("output total"), std::string::npos);
  Program foreign = chain_program();
  target::Target target = *target::find_target("avx2");
  target.features.push_back("no-such-feature");
  foreign.target = target::to_string(target);
  EXPECT_NE(message(std::move(foreign)).find("lacks no-such-feature"), std::string::npos);
}

TEST(executor, ProfileCountsEveryCommand) {
  Machine machine;
  auto context = machine.context(machine.load(chain_program()));
  check_chain(*context, 1);
  context->set_profile(true);
  for (int i = 0; i < 5; ++i) check_chain(*context, 1);
  context->set_profile(false);
  check_chain(*context, 1);
  const std::vector<CommandProfile> profile = context->profile();
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_EQ(profile[2].info->name, "total");
  for (const CommandProfile& p : profile) {
    EXPECT_EQ(p.time.count, 5);
    EXPECT_GE(p.time.min_ns, 0);
    EXPECT_GE(p.time.total_ns, 5 * p.time.min_ns);
  }
  context->reset_profile();
  EXPECT_EQ(context->profile()[0].time.count, 0);
}

TEST(executor, TracesCommands) {
  Machine machine;
  auto context = machine.context(machine.load(chain_program()));
  trace::start();
  check_chain(*context, 1);
  trace::stop();
  const std::string json = trace::to_json();
  for (const char* name : {"\"run\"", "\"add\"", "\"scale\"", "\"total\""})
    EXPECT_NE(json.find(name), std::string::npos) << name;
}

TEST(executor, PrintsHostTimePerCommand) {
  for (const bool serial : {true, false}) {
    Maker m("overhead");
    const BufferId x = m.buffer("x", BufferKind::input, kN);
    const BufferId y = m.buffer("y", BufferKind::output, kN);
    for (program::Kernel& kernel : m.p.kernels) kernel.phases[0].serial = serial;
    const int commands = 1000;
    for (int i = 0; i < commands; ++i) m.launch("nothing", {x}, {y});
    Machine machine(2);
    auto context = machine.context(machine.load(m.take()));
    Floats in(kN), out(kN);
    expect_ok(context->bind_input(0, in.data()));
    expect_ok(context->bind_output(0, out.data()));
    double best = 1e9;
    for (int run = 0; run < 20; ++run) {
      const auto start = std::chrono::steady_clock::now();
      expect_ok(context->run());
      best = std::min(
          best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
                        .count() /
                    commands);
    }
    std::printf("%s command: %.1f ns\n", serial ? "serial" : "parallel", best);
  }
}

}  // namespace
}  // namespace heddle::runtime
