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
