// Several runs in flight: bounded and static programs, errors, the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "api/heddle.h"
#include "api/run_queue.h"
#include "api/session.h"
#include "import/onnx_test_util.h"

namespace heddle::api {
namespace {

using import::testing::kFloat;
using import::testing::node;
using import::testing::value;
using ::testing::HasSubstr;

constexpr int64_t kBound = 40;

// softmax over the last dimension of x [4, length], twice. The file must stay: buckets are imported
// later.
class TwoSoftmaxes {
 public:
  explicit TwoSoftmaxes(bool bounded)
      : path_(testing::TempDir() + "queue_" + std::to_string(::getpid()) + ".onnx") {
    import::testing::Model onnx;
    onnx.inputs = {value("x", kFloat, {"4", "length"})};
    onnx.nodes = {node("Softmax", {"x"}, {"s"}), node("Softmax", {"s"}, {"y"})};
    onnx.outputs = {"y"};
    std::ofstream(path_, std::ios::binary) << onnx.bytes();
    OpenOptions options;
    (bounded ? options.bounds : options.dims)["length"] = kBound;
    auto model = Model::open(path_, options);
    EXPECT_TRUE(model) << model.error().message;
    CompileOptions compile;
    compile.cache = "off";
    auto made = Program::compile(**model, compile);
    EXPECT_TRUE(made) << made.error().message;
    program = *made;
  }
  ~TwoSoftmaxes() { std::remove(path_.c_str()); }
  std::shared_ptr<Program> program;

 private:
  std::string path_;
};

struct Asked {
  int64_t extent;
  std::vector<float> x, y, wanted;
  std::string error;
  int64_t place = -1;
};

std::vector<Asked> stream_of(Program& program, bool bounded, int count) {
  auto context = program.make_context();
  EXPECT_TRUE(context);
  std::vector<Asked> asked(static_cast<size_t>(count));
  for (size_t r = 0; r < asked.size(); ++r) {
    Asked& one = asked[r];
    one.extent = bounded ? 1 + static_cast<int64_t>(r * 7919 % kBound) : kBound;
    one.x.resize(static_cast<size_t>(4 * one.extent));
    for (size_t i = 0; i < one.x.size(); ++i) one.x[i] = static_cast<float>((i * 37 + r) % 11) / 4;
    one.y.assign(one.x.size() + 1, -7.0F);
    one.wanted = one.y;
    EXPECT_TRUE(!bounded || (*context)->set_extent("length", one.extent));
    EXPECT_TRUE((*context)->bind_input(0, one.x.data()));
    EXPECT_TRUE((*context)->bind_output(0, one.wanted.data()));
    EXPECT_TRUE((*context)->run());
  }
  return asked;
}

// The same bits as single runs; runs that fail report it and do not disturb others.
TEST(RunQueue, GivesWhatRunsOneByOneGive) {
  for (const bool bounded : {true, false}) {
    const TwoSoftmaxes model(bounded);
    const std::shared_ptr<Program>& program = model.program;
    for (const auto mode : {RunQueue::Mode::serial, RunQueue::Mode::pipelined}) {
      std::vector<Asked> asked = stream_of(*program, bounded, 60);
      auto queue = RunQueue::make(*program, mode, 3);
      ASSERT_TRUE(queue) << queue.error().message;
      EXPECT_EQ((*queue)->is_pipelined(), mode == RunQueue::Mode::pipelined);
      int64_t place = 0;
      for (size_t r = 0; r < asked.size(); ++r) {
        Asked& one = asked[r];
        RunRequest request{{one.x.data()}, {one.y.data()}, {}};
        if (bounded) request.extents = {{"length", r % 10 == 3 ? kBound + 1 : one.extent}};
        if (r % 10 == 5) request.inputs.clear();
        (*queue)->submit(std::move(request), [&one, &place](const Status& status) {
          one.place = place++;
          if (!status) one.error = status.error().message;
        });
      }
      (*queue)->drain();
      for (size_t r = 0; r < asked.size(); ++r) {
        const Asked& one = asked[r];
        EXPECT_EQ(one.place, static_cast<int64_t>(r));
        if (r % 10 == 5) {
          EXPECT_THAT(one.error, HasSubstr("0 inputs"));
        } else if (bounded && r % 10 == 3) {
          EXPECT_THAT(one.error, HasSubstr("'length' is 41, wanted 1 to 40"));
        } else {
          EXPECT_EQ(one.error, "");
          EXPECT_EQ(one.y, one.wanted) << r;
          continue;
        }
        EXPECT_EQ(one.y, std::vector<float>(one.y.size(), -7.0F)) << r;
      }
    }
  }
}

TEST(RunQueue, TheCInterface) {
  const std::string text =
      "HloModule m\nENTRY main {\n x = f32[8] parameter(0)\n ROOT y = f32[8] add(x, x)\n}\n";
  const std::string path = testing::TempDir() + "queue_" + std::to_string(::getpid()) + ".hlo";
  std::ofstream(path) << text;
  heddle_model* model = nullptr;
  ASSERT_EQ(heddle_model_open(path.c_str(), nullptr, &model), nullptr);
  std::remove(path.c_str());
  heddle_program* program = nullptr;
  ASSERT_EQ(heddle_compile(model, nullptr, &program), nullptr);
  for (const int32_t mode : {HEDDLE_QUEUE_AUTOMATIC, HEDDLE_QUEUE_SERIAL, HEDDLE_QUEUE_PIPELINED}) {
    heddle_queue_options options{};
    options.struct_size = sizeof(options);
    options.mode = mode;
    heddle_queue* queue = nullptr;
    ASSERT_EQ(heddle_queue_create(program, &options, &queue), nullptr);
    if (mode != HEDDLE_QUEUE_AUTOMATIC) {
      EXPECT_EQ(heddle_queue_is_pipelined(queue), mode == HEDDLE_QUEUE_PIPELINED);
    }
    alignas(64) float x[10][8], y[10][8];
    int told[10] = {};
    heddle_run* runs[10];
    for (int r = 0; r < 10; ++r) {
      for (float& one : x[r]) one = static_cast<float>(r);
      const void* input = x[r];
      void* output = y[r];
      heddle_run_request request{};
      request.struct_size = sizeof(request);
      request.inputs = &input;
      request.input_count = 1;
      request.outputs = &output;
      request.output_count = r == 4 ? 0 : 1;
      request.done = [](const heddle_status* status, void* count) {
        *static_cast<int*>(count) += 1 + heddle_status_kind(status);
      };
      request.context = &told[r];
      heddle_status* refused = heddle_queue_submit(queue, &request, r == 7 ? nullptr : &runs[r]);
      EXPECT_EQ(heddle_status_kind(refused), r == 4 ? HEDDLE_USER_ERROR : HEDDLE_OK);
      heddle_status_free(refused);
    }
    for (int r = 0; r < 10; ++r) {
      if (r == 4 || r == 7) continue;
      EXPECT_EQ(heddle_run_wait(runs[r]), nullptr);
      EXPECT_EQ(heddle_run_is_done(runs[r]), 1);
      heddle_run_free(runs[r]);
    }
    heddle_queue_drain(queue);
    for (int r = 0; r < 10; ++r) {
      EXPECT_EQ(told[r], r == 4 ? 0 : 1);  // refused requests are not reported
      if (r == 4) continue;
      for (float one : y[r]) EXPECT_EQ(one, static_cast<float>(2 * r));
    }
    heddle_queue_free(queue);
  }
  heddle_queue_options wrong{};
  wrong.struct_size = sizeof(wrong);
  wrong.mode = 3;
  heddle_queue* queue = nullptr;
  heddle_status* status = heddle_queue_create(program, &wrong, &queue);
  EXPECT_THAT(heddle_status_message(status), HasSubstr("options->mode is 3"));
  heddle_status_free(status);
  heddle_program_free(program);
  heddle_model_free(model);
}

}  // namespace
}  // namespace heddle::api
