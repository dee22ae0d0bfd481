// Caches to which several rows are joined at a time: what stands behind the new rows is not seen,
// neither in this run nor in a later one of more rows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <random>

#include "api/session.h"
#include "import/onnx_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::kFloat;
using import::testing::node;
using import::testing::value;

constexpr int64_t kHeads = 2, kWidth = 8;

// present = past [batch, 2, past, 8] and the logarithms of new [batch, 2, tokens, 8], which are
// infinite behind it; y = weights [batch, 2, 1, past + tokens] * present.
std::string write_model() {
  import::testing::Model model;
  model.inputs = {value("past", kFloat, {"batch", "2", "past", "8"}),
                  value("new", kFloat, {"batch", "2", "tokens", "8"}),
                  value("weights", kFloat, {"batch", "2", "1", "past + tokens"})};
  model.nodes = {node("Log", {"new"}, {"logs"}),
                 node("Concat", {"past", "logs"}, {"present"}, {attr("axis", int64_t{2})}),
                 node("MatMul", {"weights", "present"}, {"y"})};
  model.outputs = {"present", "y"};
  const std::string path =
      testing::TempDir() + "growing_rows_" + std::to_string(::getpid()) + ".onnx";
  std::ofstream(path, std::ios::binary) << model.bytes();
  return path;
}

struct Sizes {
  int64_t batch, past, tokens;
};

void expect_right(Context* context, const Sizes& n, std::mt19937* random) {
  const int64_t total = n.past + n.tokens, rows = n.batch * kHeads;
  std::uniform_real_distribution<float> draw(0.5F, 2);
  const auto drawn = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count) + 1);
    for (float& one : values) one = draw(*random);
    return values;
  };
  const auto past = drawn(rows * n.past * kWidth), fresh = drawn(rows * n.tokens * kWidth),
             weights = drawn(rows * total);
  std::vector<float> present(static_cast<size_t>(rows * total * kWidth)),
      y(static_cast<size_t>(rows * kWidth));
  ASSERT_TRUE(context->set_extent("batch", n.batch));
  ASSERT_TRUE(context->set_extent("past", n.past));
  ASSERT_TRUE(context->set_extent("tokens", n.tokens));
  int64_t number = 0;
  for (const std::vector<float>* input : {&past, &fresh, &weights})
    ASSERT_TRUE(context->bind_input(number++, input->data()));
  ASSERT_TRUE(context->bind_output(0, present.data()));
  ASSERT_TRUE(context->bind_output(1, y.data()));
  const Status status = context->run();
  ASSERT_TRUE(status) << status.error().message;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < kWidth; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < total; ++i) {
        const double wanted =
            i < n.past
                ? double(past[size_t((row * n.past + i) * kWidth + c)])
                : std::log(double(fresh[size_t((row * n.tokens + i - n.past) * kWidth + c)]));
        ASSERT_NEAR(present[size_t((row * total + i) * kWidth + c)], wanted, 1e-5);
        sum += wanted * double(weights[size_t(row * total + i)]);
      }
      ASSERT_NEAR(y[size_t(row * kWidth + c)], sum, 1e-3)
          << n.batch << " " << n.past << " " << n.tokens;
    }
}

TEST(GrowingRows, NothingIsSeenBehindThem) {
  const std::string path = write_model();
  OpenOptions open;
  open.bounds = {{"batch", 6}, {"past", 40}, {"tokens", 7}};
  auto model = Model::open(path, open);
  ASSERT_TRUE(model) << model.error().message;
  CompileOptions options;
  options.cache = "off";
  options.explain = true;
  auto program = Program::compile(**model, options);
  ASSERT_TRUE(program) << program.error().message;
  auto context = (*program)->make_context();
  ASSERT_TRUE(context);
  std::mt19937 random(7);
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int run = 0; run < 200 && !testing::Test::HasFailure(); ++run)
    expect_right(context->get(), {between(1, 6), between(0, 40), between(1, 7)}, &random);
  int64_t masks = 0;  // a mask of all of the cache would be a kernel of its own, or select in one
  for (int64_t i = 0; i < (*context)->command_count(); ++i)
    masks += std::string((*context)->command(i).operators).find("select") != std::string::npos;
  EXPECT_LE(masks, 1) << "that of the new rows";
  std::remove(path.c_str());
}

}  // namespace
}  // namespace heddle::api
