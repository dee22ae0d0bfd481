#include "api/small_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/late_test_util.h"
#include "hlo/parser.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::ints_tensor;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::node;
using import::testing::tensor;
using import::testing::value;
using testing::Floats;
using testing::Ints;
using testing::Session;

SmallStage stage_of(const std::string& body) {
  auto module = hlo::parse_module("HloModule m\nENTRY e {\n" + body + "}\n");
  EXPECT_TRUE(module) << module.error().message;
  return module ? small_stage(**module) : SmallStage::no;
}

TEST(SmallStage, IntegersAreExactAndSumsOfFloatsAreNot) {
  EXPECT_EQ(stage_of("x = s64[9] parameter(0)\n ROOT y = s64[9] multiply(x, x)\n"),
            SmallStage::exact);
  EXPECT_EQ(stage_of("x = f32[9] parameter(0)\n y = f32[9] floor(x)\n"
                     " ROOT z = s64[9] convert(y)\n"),
            SmallStage::exact);
  EXPECT_EQ(stage_of("x = f32[9] parameter(0)\n ROOT y = f32[9] multiply(x, x)\n"),
            SmallStage::rounded);
}

TEST(SmallStage, MuchIsCompiled) {
  EXPECT_EQ(stage_of("x = s64[2000] parameter(0)\n ROOT y = s64[2000] multiply(x, x)\n"),
            SmallStage::no);
  EXPECT_EQ(stage_of("x = f32[9,9] parameter(0)\n ROOT y = f32[9,9] dot(x, x), "
                     "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"),
            SmallStage::no);
  std::string chain = "x0 = s64[] parameter(0)\n";
  for (int i = 0; i < 30; ++i) {
    const std::string from = std::to_string(i), to = std::to_string(i + 1);
    chain += (i == 29 ? "ROOT x" : "x") + to + " = s64[] add(x" + from + ", x" + from + ")\n";
  }
  EXPECT_EQ(stage_of(chain), SmallStage::no);
}

// y = one zero for each of the rounded-down x[0].
import::testing::Model zeros(const char* round) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1"})};
  model.constants = {tensor<float>("half", kFloat, {}, {0.5F})};
  model.nodes = {node(round, {"x", "half"}, {"n"}),
                 node("Cast", {"n"}, {"shape"}, {attr("to", int64_t{kInt64})}),
                 node("ConstantOfShape", {"shape"}, {"y"})};
  model.typed_outputs = {value("y", kFloat, {"k"})};
  return model;
}

// What runs often is compiled, which changes nothing.
TEST(SmallStage, RunsOnAsItWas) {
  for (const char* round : {"Max", "Mul"}) {
    Session session(zeros(round), {}, true);
    session.set_shape(0, {1});
    for (int64_t k = 0; k < kMostInterpretedRuns + 20; ++k) {
      const float x = 1 + static_cast<float>(k % 3);
      const auto count = static_cast<size_t>(round == std::string("Max") ? x : x / 2);
      ASSERT_EQ(session.run(&x, nullptr).size(), count);
      ASSERT_EQ(session.error(), "");
    }
  }
}

}  // namespace
}  // namespace heddle::api
