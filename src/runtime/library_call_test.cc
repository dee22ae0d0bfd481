// Library calls in a run: tasks on the workers, preparation, errors.
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/cpu_device.h"
#include "runtime/executor.h"

namespace heddle::runtime {
namespace {

using program::BufferId;
using program::BufferKind;
using program::LibraryCall;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

constexpr int64_t kN = 64;

// y = x * w[0], sixteen elements a task.
class Scale : public LibraryWork {
 public:
  explicit Scale(bool fails) : fails_(fails) {}
  int64_t tasks() const override { return kN / 16; }
  Status prepare(void* const* buffers) override {
    ++prepared;
    factor_ = *static_cast<const float*>(buffers[1]);
    return {};
  }
  Status run(void* const* buffers, int64_t begin, int64_t end) const override {
    if (fails_ && end > 2) return machine_error("task {} failed", begin);
    const auto* x = static_cast<const float*>(buffers[0]);
    auto* y = static_cast<float*>(buffers[2]);
    for (int64_t i = begin * 16; i < end * 16; ++i) y[i] = x[i] * factor_;
    return {};
  }
  std::atomic<int> prepared{0};

 private:
  bool fails_;
  float factor_ = 0;
};

program::Program scaling() {
  program::Program p;
  p.name = "scaling";
  const Shape shape = Shape::array(Type::f32, {kN});
  p.buffers = {{"x", BufferKind::input, 4 * kN, 0, 0},
               {"w", BufferKind::constant, 4},
               {"y", BufferKind::output, 4 * kN, 0, 0}};
  p.constants.resize(3);
  p.constants[1] = Literal(Shape::array(Type::f32, {1}));
  p.constants[1].mutable_values<float>()[0] = 3;
  p.inputs = {{"x", "", shape, BufferId(0), {}}};
  p.outputs = {{"y", "", shape, BufferId(2), {}}};
  LibraryCall call;
  call.library = "fake";
  call.operation = "scale";
  call.arguments = {{BufferId(0), 0, shape}, {BufferId(1), 0, Shape::array(Type::f32, {1})}};
  call.result = {BufferId(2), 0, shape};
  call.fixed = {1};
  call.tasks = 4;
  p.commands = {call};
  p.command_info = {{"y", "multiply"}};
  return p;
}

struct Scaling {
  explicit Scaling(int threads, bool fails = false) : workers(threads), cpu(workers) {
    auto executable =
        Executable::load(scaling(), cpu.device(), {},
                         [&](const LibraryCall& call) -> Result<std::shared_ptr<LibraryWork>> {
                           EXPECT_EQ(call.operation, "scale");
                           return work = std::make_shared<Scale>(fails);
                         });
    EXPECT_TRUE(executable) << executable.error().message;
    auto made = (*executable)->make_context();
    EXPECT_TRUE(made);
    context = std::move(*made);
    for (int64_t i = 0; i < kN; ++i) x[i] = static_cast<float>(i);
    EXPECT_TRUE(context->bind_input(0, x));
    EXPECT_TRUE(context->bind_output(0, y));
  }
  Workers workers;
  CpuDevice cpu;
  std::shared_ptr<Scale> work;
  std::unique_ptr<Context> context;
  alignas(64) float x[kN] = {}, y[kN] = {};
};

TEST(library_call, TasksRunOnTheWorkers) {
  for (int threads : {1, 2, 3}) {
    Scaling run(threads);
    for (int i = 0; i < 3; ++i) {
      std::fill(run.y, run.y + kN, -1.0f);
      ASSERT_TRUE(run.context->run());
      for (int64_t e = 0; e < kN; ++e) ASSERT_EQ(run.y[e], 3.0f * static_cast<float>(e));
    }
    EXPECT_EQ(run.work->prepared, 3);
  }
}

TEST(library_call, ProfilesCountIt) {
  Scaling run(2);
  run.context->set_profile(true);
  ASSERT_TRUE(run.context->run());
  EXPECT_EQ(run.context->profile().at(0).time.count, 1);
}

TEST(library_call, ErrorsOfTasksComeOut) {
  for (int threads : {1, 2}) {
    Scaling run(threads, /*fails=*/true);
    for (int i = 0; i < 2; ++i) {
      const Status status = run.context->run();
      ASSERT_FALSE(status);
      EXPECT_NE(status.error().message.find("y: task"), std::string::npos)
          << status.error().message;
    }
  }
}

TEST(library_call, WithoutLibrariesTheProgramIsRefused) {
  Workers workers(1);
  CpuDevice cpu(workers);
  auto none = Executable::load(scaling(), cpu.device());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::user);
  EXPECT_NE(none.error().message.find("needs the library fake"), std::string::npos);
  auto absent = Executable::load(scaling(), cpu.device(), {},
                                 [](const LibraryCall&) -> Result<std::shared_ptr<LibraryWork>> {
                                   return user_error("not here");
                                 });
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "program scaling: y: not here");
}

}  // namespace
}  // namespace heddle::runtime
