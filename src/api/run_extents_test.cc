// Extents of bounded dimensions from the shapes of inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "api/heddle.h"
#include "import/onnx_test_util.h"

namespace heddle::api {
namespace {

namespace onnx = import::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ok(heddle_status* status) {
  const std::string message = heddle_status_message(status);
  heddle_status_free(status);
  if (status != nullptr) throw std::runtime_error(message);
}

// y = a + b of f32[n,2], z = (a, a) of f32[2n,2]; n <= 16.
class Shapes : public ::testing::Test {
 protected:
  Shapes() {
    onnx::Model model;
    model.inputs = {onnx::value("a", onnx::kFloat, {"n", "2"}),
                    onnx::value("b", onnx::kFloat, {"n", "2"})};
    model.nodes = {onnx::node("Add", {"a", "b"}, {"y"}),
                   onnx::node("Concat", {"a", "a"}, {"z"}, {onnx::attr("axis", int64_t{0})})};
    model.outputs = {"y", "z"};
    const heddle_dim bound{"n", 16};
    heddle_open_options open{};
    open.struct_size = sizeof open;
    open.bounds = &bound;
    open.bound_count = 1;
    const std::string bytes = model.bytes();
    ok(heddle_model_parse("m.onnx", bytes.data(), bytes.size(), &open, &model_));
    heddle_compile_options options{};
    options.struct_size = sizeof options;
    options.cache = "off";
    ok(heddle_compile(model_, &options, &program_));
    ok(heddle_context_create(program_, &context_));
  }
  ~Shapes() override {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
  }
  heddle_status* shape(int64_t input, std::vector<int64_t> dims) {
    return heddle_context_set_input_shape(context_, input, dims.data(), std::ssize(dims));
  }
  std::vector<int64_t> output(int64_t number) {
    heddle_port port{};
    port.struct_size = sizeof port;
    heddle_context_output(context_, number, &port);
    EXPECT_EQ(port.bytes, 4 * port.dims[0] * port.dims[1]);
    return {port.dims, port.dims + port.rank};
  }
  static void expect_shape_error(heddle_status* status, const char* text) {
    EXPECT_EQ(heddle_status_code(status), HEDDLE_CODE_SHAPE);
    EXPECT_THAT(heddle_status_message(status), HasSubstr(text));
    heddle_status_free(status);
  }
  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  heddle_context* context_ = nullptr;
};

TEST_F(Shapes, OutputsFollowInputs) {
  EXPECT_THAT(output(0), ElementsAre(16, 2));
  for (const int64_t n : {3, 16, 1, 5}) {
    std::vector<float> a(static_cast<size_t>(2 * n)), b(a.size(), 10), y(a.size()), z(2 * a.size());
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
    ok(shape(0, {n, 2}));
    ok(shape(1, {n, 2}));
    ok(heddle_context_prepare(context_));
    EXPECT_THAT(output(0), ElementsAre(n, 2));
    EXPECT_THAT(output(1), ElementsAre(2 * n, 2));
    ok(heddle_context_bind_input(context_, 0, a.data()));
    ok(heddle_context_bind_input(context_, 1, b.data()));
    ok(heddle_context_bind_output(context_, 0, y.data()));
    ok(heddle_context_bind_output(context_, 1, z.data()));
    ok(heddle_context_run(context_));
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(y[i], a[i] + 10);
      EXPECT_EQ(z[i], a[i]);
      EXPECT_EQ(z[a.size() + i], a[i]);
    }
  }
}

TEST_F(Shapes, InputsMustAgree) {
  ok(shape(0, {3, 2}));
  ok(shape(1, {4, 2}));
  expect_shape_error(heddle_context_prepare(context_), "input a is [3,2]; wanted [4,2]");
  expect_shape_error(heddle_context_run(context_), "input a is [3,2]");
  ok(shape(0, {4, 2}));
  ok(heddle_context_prepare(context_));
  ok(heddle_context_set_dim(context_, "n", 7));  // by name from now on
  ok(heddle_context_prepare(context_));
  EXPECT_THAT(output(1), ElementsAre(14, 2));
}

TEST_F(Shapes, OnlyBoundedDimensionsMayDiffer) {
  expect_shape_error(shape(0, {17, 2}), "input a is [17,2]; wanted [n<=16,2]");
  expect_shape_error(shape(0, {0, 2}), "wanted [n<=16,2]");
  expect_shape_error(shape(1, {3, 4}), "input b is [3,4]");
  EXPECT_THAT(output(0), ElementsAre(16, 2));
}

}  // namespace
}  // namespace heddle::api
