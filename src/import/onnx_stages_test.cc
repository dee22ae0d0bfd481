// Imports in stages: what is asked for, and what later stages do not compute again.
#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using namespace testing;  // NOLINT: what it is made for
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// y = the elements of x w that are not 0.
Model nonzero_product() {
  Model model;
  model.inputs = {value("x", kFloat, {"4", "8"}), value("w", kFloat, {"8", "3"})};
  model.nodes = {node("MatMul", {"x", "w"}, {"m"}), node("NonZero", {"m"}, {"at"}, {}, "", "nz"),
                 node("Transpose", {"at"}, {"rows"}), node("GatherND", {"m", "rows"}, {"y"})};
  model.outputs = {"y"};
  return model;
}

TEST(OnnxStages, WithoutStagesItIsAnError) {
  EXPECT_THAT(error_of(nonzero_product().import()),
              HasSubstr("the number of nonzero elements depends on the model's inputs; give"));
}

TEST(OnnxStages, AStageComputesTheValueAndWhatIsReadBehindIt) {
  Options options;
  options.stages = true;
  const Imported stage = imported(nonzero_product().import(options));
  EXPECT_THAT(stage.undecided_why, HasSubstr("'nz' (NonZero)"));
  ASSERT_FALSE(stage.undecided.empty());
  EXPECT_THAT(stage.output_names, ElementsAre(stage.undecided, "m@0"));
  EXPECT_EQ(shape_of(stage, 0), "s64[]");
  EXPECT_EQ(count(stage, Opcode::dot), 1);

  options.decided[stage.undecided] = tensor::Literal(tensor::Shape::scalar(tensor::Type::s64));
  options.decided[stage.undecided].set_s64(0, 5);
  const Imported whole = imported(nonzero_product().import(options));
  EXPECT_THAT(whole.undecided, IsEmpty());
  EXPECT_EQ(shape_of(whole), "f32[5]");
  EXPECT_EQ(count(whole, Opcode::dot), 1);

  options.carried["m@0"] = tensor::Shape::array(tensor::Type::f32, {4, 3});
  const Imported rest = imported(nonzero_product().import(options));
  EXPECT_THAT(rest.input_names, ElementsAre("x", "w", "m@0"));
  EXPECT_EQ(count(rest, Opcode::dot), 0);
}

// It is written out as far as its condition is known.
TEST(OnnxStages, ALoopThatDataStopsDecidesTripByTrip) {
  Message body;
  body.message(1, node("Add", {"a", "x"}, {"b"})).message(1, node("ReduceSum", {"b"}, {"s"}));
  body.message(1, node("Squeeze", {"s"}, {"t"})).message(1, node("Less", {"t", "ten"}, {"go"}));
  body.message(1, node("Identity", {"b"}, {"slice"})).text(2, "body");
  body.message(5, tensor<float>("ten", kFloat, {}, {10.f}));
  for (const Message& input :
       {value("i", kInt64, {}), value("going", kBool, {}), value("a", kFloat, {"3"})})
    body.message(11, input);
  for (const char* output : {"go", "b", "slice"}) body.message(12, Message().text(1, output));
  Model model;
  model.inputs = {value("x", kFloat, {"3"})};
  model.nodes = {node("Loop", {"", "", "x"}, {"last", "y"}, {graph_attr("body", body)})};
  model.outputs = {"y"};
  EXPECT_THAT(error_of(model.import()), HasSubstr("the trip count must be known"));
  Options options;
  options.stages = true;
  for (int trip = 0; trip < 2; ++trip) {
    const Imported stage = imported(model.import(options));
    EXPECT_THAT(stage.undecided_why,
                HasSubstr("whether it continues after trip " + std::to_string(trip)));
    tensor::Literal go(tensor::Shape::scalar(tensor::Type::pred));
    go.set_s64(0, trip == 0 ? 1 : 0);
    ASSERT_TRUE(options.decided.emplace(stage.undecided, go).second);
  }
  EXPECT_EQ(shape_of(imported(model.import(options))), "f32[2,3]");
}

// Few integers decide by themselves.
TEST(OnnxStages, SmallIntegersAreBound) {
  Model model;
  model.inputs = {value("x", kFloat, {"6"}), value("n", kInt64, {"1"})};
  model.nodes = {node("Add", {"n", "n"}, {"twice"}), node("Reshape", {"x", "twice"}, {"y"})};
  model.outputs = {"y"};
  Options options;
  options.stages = true;
  options.hints["n"] = tensor::Literal(tensor::Shape::array(tensor::Type::s64, {1}));
  options.hints["n"].set_s64(0, 3);
  const Imported bound = imported(model.import(options));
  ASSERT_EQ(bound.bound.size(), 1u);
  EXPECT_EQ(bound.bound[0].name, "n");
  EXPECT_EQ(bound.bound[0].place, 1);
  EXPECT_THAT(bound.bound[0].why, HasSubstr("Reshape"));
  EXPECT_EQ(shape_of(bound), "f32[6]");
}

}  // namespace
}  // namespace heddle::import
