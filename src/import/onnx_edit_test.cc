#include "import/onnx_edit.h"

#include <filesystem>
#include <fstream>

#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using namespace testing;  // NOLINT: the words of the tests' models
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

class OnnxEditTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("heddle-edit-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& bytes) const {
    const std::string path = (folder_ / "m.onnx").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static Model model() {
    Model model;
    model.inputs = {value("x", kFloat, {"2", "3"})};
    model.constants = {tensor<float>("w", kFloat, {3, 2}, {1, 2, 3, 4, 5, 6}),
                       tensor<float>("unused", kFloat, {1}, {7})};
    model.nodes = {node("MatMul", {"x", "w"}, {"h"}, {}, "", "product"),
                   node("Softmax", {"h"}, {"y"}, {attr("axis", int64_t{1})})};
    model.outputs = {"y"};
    return model;
  }
  std::filesystem::path folder_;
};

TEST_F(OnnxEditTest, WithoutChangesOnlyWhatNothingReadsIsGone) {
  Model from = model();
  auto edit = OnnxEdit::open(file(from.bytes()));
  ASSERT_TRUE(edit) << edit.error().message;
  EXPECT_EQ(edit->nodes()[1].ints.at("axis"), 1);
  EXPECT_EQ(edit->opset(), 17);
  EXPECT_TRUE(edit->is_initializer("w") && edit->is_f32("w"));
  const auto written = edit->write();
  ASSERT_TRUE(written);
  from.constants.pop_back();
  EXPECT_EQ(*written, from.bytes());
}

TEST_F(OnnxEditTest, ChangesAreWhereTheyBelong) {
  auto edit = OnnxEdit::open(file(model().bytes()));
  ASSERT_TRUE(edit);
  Literal two(Shape::array(Type::f32, {}));
  two.set_f64(0, 2);
  edit->add("two", two);
  edit->put_before(1, {"Mul", "", "double", {"h", "two"}, {"twice"}});
  edit->rename_input(1, 0, "twice");
  edit->add_output("h");
  edit->need_opset("", 18);
  edit->need_opset("com.microsoft", 1);
  const auto written = edit->write();
  ASSERT_TRUE(written);
  const auto imported = import_onnx_bytes(*written, "", {});
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->output_names, (std::vector<std::string>{"y", "h"}));
  EXPECT_THAT(hlo::to_string(*imported->module), ::testing::HasSubstr("multiply("));
  edit->clear();
  auto again = edit->write();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->find("twice"), std::string::npos);
}

TEST_F(OnnxEditTest, ANodeIsReplacedAndItsConstantGoes) {
  auto edit = OnnxEdit::open(file(model().bytes()));
  ASSERT_TRUE(edit);
  edit->replace(0, {{"Identity", "", "same", {"x"}, {"h"}}});
  const auto written = edit->write();
  ASSERT_TRUE(written);
  EXPECT_EQ(written->find("product"), std::string::npos);
  const auto imported = import_onnx_bytes(*written, "", {});
  ASSERT_TRUE(imported) << imported.error().message;
}

TEST_F(OnnxEditTest, WhatIsNoModelIsRefused) {
  EXPECT_FALSE(OnnxEdit::open((folder_ / "none.onnx").string()));
  EXPECT_FALSE(OnnxEdit::open(file("HloModule x\n")));
  const std::string bytes = model().bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    auto edit = OnnxEdit::open(file(bytes.substr(0, length)));
    if (edit) (void)edit->write();
  }
}

// Scales that are not positive numbers.
TEST(OnnxQuantize, ScalesArePositiveNumbers) {
  for (float scale : {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const char* op : {"QuantizeLinear", "DequantizeLinear"}) {
      Model model;
      model.inputs = {value("x", op[0] == 'Q' ? kFloat : kInt8, {"4"})};
      model.constants = {tensor<float>("s", kFloat, {}, {scale}),
                         tensor<int8_t>("z", kInt8, {}, {0})};
      model.nodes = {node(op, {"x", "s", "z"}, {"y"})};
      model.outputs = {"y"};
      const auto imported = model.import();
      ASSERT_FALSE(imported) << op << " " << scale;
      EXPECT_THAT(imported.error().message, ::testing::HasSubstr("wanted a positive number"));
    }
  }
}

}  // namespace
}  // namespace heddle::import
