// Operators: their form in HLO, differences between opsets, errors. Values are checked if the
// importer itself computes them; models run in tests/onnx_models_test.cc.
#include "import/onnx_ops.h"

#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT

// One node over constants only: folded at import.
std::vector<double> known(const std::string& op, const std::vector<Message>& constants,
                          const std::vector<Message>& attributes = {}, int64_t opset = 17) {
  Model model;
  Strings names;
  for (size_t i = 0; i < constants.size(); ++i) names.push_back("c" + std::to_string(i));
  model.constants = constants;
  model.nodes = {node(op, names, {"y"}, attributes)};
  model.outputs = {"y"};
  model.opset = opset;
  return folded(imported(model.import()));
}

Message floats(const std::string& name, const Ints& dims, const std::vector<float>& values) {
  return tensor<float>(name, kFloat, dims, values);
}

std::string refusal(const std::string& op, const std::vector<Strings>& shapes,
                    const std::vector<Message>& attributes = {},
                    const std::vector<Ints>& constants = {}, int64_t opset = 17) {
  return error_of(one_node(op, shapes, attributes, constants, opset).import());
}

Imported one(const std::string& op, const std::vector<Strings>& shapes,
             const std::vector<Message>& attributes = {}, const std::vector<Ints>& constants = {},
             int64_t opset = 17) {
  return imported(one_node(op, shapes, attributes, constants, opset).import());
}

TEST(OnnxMatMul, ASharedMatrixHasNoBatch) {
  const Imported result = one("MatMul", {{"2", "5", "3"}, {"3", "4"}});
  EXPECT_EQ(shape_of(result), "f32[2,5,4]");
  const auto& attrs = find(result, Opcode::dot)->attrs_as<hlo::DotAttrs>();
  EXPECT_TRUE(attrs.lhs_batch_dims.empty());
  EXPECT_THAT(attrs.lhs_contracting_dims, ElementsAre(2));
  EXPECT_THAT(attrs.rhs_contracting_dims, ElementsAre(0));
  EXPECT_EQ(count(result, Opcode::reshape), 0);
}

TEST(OnnxMatMul, SharedBatchesAreBatchDimensions) {
  const Imported result = one("MatMul", {{"2", "3", "5", "4"}, {"2", "3", "4", "6"}});
  EXPECT_EQ(shape_of(result), "f32[2,3,5,6]");
  const auto& attrs = find(result, Opcode::dot)->attrs_as<hlo::DotAttrs>();
  EXPECT_THAT(attrs.lhs_batch_dims, ElementsAre(0, 1));
  EXPECT_THAT(attrs.rhs_batch_dims, ElementsAre(0, 1));
  EXPECT_EQ(result.module->entry()->instrs().size(), 4u);
}

TEST(OnnxMatMul, BroadcastsAndVectors) {
  EXPECT_EQ(shape_of(one("MatMul", {{"2", "1", "5", "4"}, {"3", "4", "6"}})), "f32[2,3,5,6]");
  EXPECT_EQ(shape_of(one("MatMul", {{"2", "5", "4"}, {"1", "1", "4", "6"}})), "f32[1,2,5,6]");
  EXPECT_EQ(shape_of(one("MatMul", {{"4"}, {"4"}})), "f32[]");
  EXPECT_EQ(shape_of(one("MatMul", {{"4"}, {"2", "4", "6"}})), "f32[2,6]");
  EXPECT_EQ(shape_of(one("MatMul", {{"2", "5", "4"}, {"4"}})), "f32[2,5]");
  EXPECT_THAT(refusal("MatMul", {{"2", "3"}, {"4", "5"}}), HasSubstr("inner dimensions 3 and 4"));
  EXPECT_THAT(refusal("MatMul", {{"2", "1", "3"}, {"3", "3", "5"}, {"1"}}), HasSubstr("3 inputs"));
  EXPECT_THAT(refusal("MatMul", {{"2", "1", "3"}, {"3", "3", "5"}}), HasSubstr("do not broadcast"));
}

TEST(OnnxGemm, TransposesAreInTheDot) {
  const Imported result = one("Gemm", {{"3", "2"}, {"4", "3"}, {"4"}},
                              {attr("transA", int64_t{1}), attr("transB", int64_t{1})});
  EXPECT_EQ(shape_of(result), "f32[2,4]");
  const auto& attrs = find(result, Opcode::dot)->attrs_as<hlo::DotAttrs>();
  EXPECT_THAT(attrs.lhs_contracting_dims, ElementsAre(0));
  EXPECT_THAT(attrs.rhs_contracting_dims, ElementsAre(1));
  EXPECT_EQ(count(result, Opcode::multiply), 0);  // alpha and beta are 1
  EXPECT_EQ(count(result, Opcode::transpose), 0);
}

TEST(OnnxSoftmax, SubtractsTheMaximum) {
  const Imported result = one("Softmax", {{"2", "3", "4"}}, {attr("axis", int64_t{-1})});
  EXPECT_EQ(count(result, Opcode::reduce), 2);
  EXPECT_EQ(count(result, Opcode::reshape), 0);
  const Instr* exponential = find(result, Opcode::exponential);
  EXPECT_TRUE(exponential->operand(0)->is(Opcode::subtract));
  // Before opset 13 all dimensions from the axis on are reduced.
  const Imported old = one("Softmax", {{"2", "3", "4"}}, {attr("axis", int64_t{1})}, {}, 12);
  EXPECT_THAT(find(old, Opcode::reduce)->dimensions(), ElementsAre(1, 2));
}

TEST(OnnxLayerNormalization, TwoPassesWithoutDetours) {
  const Imported result = one("LayerNormalization", {{"2", "3", "8"}, {"8"}, {"8"}});
  EXPECT_EQ(count(result, Opcode::reduce), 2);
  EXPECT_EQ(count(result, Opcode::rsqrt), 1);
  EXPECT_EQ(count(result, Opcode::reshape), 0);
  Model model = one_node("LayerNormalization", {{"2", "3", "8"}, {"8"}});
  model.nodes = {node("LayerNormalization", {"x0", "x1"}, {"y", "mean", "deviation"})};
  model.outputs = {"y", "mean", "deviation"};
  const Imported all = imported(model.import());
  EXPECT_EQ(shape_of(all, 1), "f32[2,3,1]");
}

// keepdims and the broadcast after it cancel: the reduced value is broadcast directly.
TEST(OnnxReduce, KeepdimsLeaveNoReshape) {
  Model model = one_node("ReduceMean", {{"2", "8"}}, {attr("axes", Ints{-1})});
  model.nodes.push_back(node("Sub", {"x0", "y"}, {"z"}));
  model.outputs = {"z"};
  const Imported result = imported(model.import());
  EXPECT_EQ(count(result, Opcode::reshape), 0) << hlo::to_string(*result.module);
  EXPECT_EQ(shape_of(result), "f32[2,8]");
}

TEST(OnnxReduce, AxesAreAttributesThenInputs) {
  EXPECT_EQ(shape_of(one("ReduceSum", {{"2", "3"}}, {attr("axes", Ints{1})}, {}, 11)), "f32[2,1]");
  EXPECT_EQ(shape_of(one("ReduceSum", {{"2", "3"}}, {}, {{1}}, 13)), "f32[2,1]");
  EXPECT_EQ(shape_of(one("ReduceMean", {{"2", "3"}}, {attr("axes", Ints{0})}, {}, 17)), "f32[1,3]");
  EXPECT_EQ(shape_of(one("ReduceMean", {{"2", "3"}}, {}, {{0}}, 18)), "f32[1,3]");
  EXPECT_EQ(shape_of(one("ReduceMax", {{"2", "3"}}, {attr("keepdims", int64_t{0})})), "f32[]");
  EXPECT_EQ(count(one("ReduceSum", {{"2"}}, {attr("noop_with_empty_axes", int64_t{1})}, {}, 13),
                  Opcode::reduce),
            0);
  EXPECT_THAT(refusal("ReduceMax", {{"2", "3"}}, {}, {{0}}, 13),
              HasSubstr("at opset 13 they are the attribute `axes`, an input from 18 on"));
  EXPECT_THAT(refusal("ReduceSum", {{"2", "3"}}, {}, {{0, -2}}, 13),
              HasSubstr("name a dimension twice"));
  EXPECT_THAT(refusal("ReduceSum", {{"2", "3"}}, {}, {{2}}, 13),
              HasSubstr("axis 2 is out of range"));
}

TEST(OnnxShape, ValuesOfFoldedOperators) {
  const Message matrix = floats("c0", {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(known("Transpose", {matrix}), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(known("Slice", {matrix, ints_tensor("c1", {-1}), ints_tensor("c2", {-100}),
                              ints_tensor("c3", {1}), ints_tensor("c4", {-2})}),
              ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(known("Slice", {matrix}, {attr("starts", Ints{1}), attr("ends", Ints{INT64_MAX})}, 9),
              ElementsAre(4, 5, 6));
  EXPECT_THAT(known("Gather", {matrix, ints_tensor("c1", {-1, 0})}), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(known("Pad", {floats("c0", {2}, {1, 2}), ints_tensor("c1", {1, 2})},
                    {attr("mode", std::string("edge"))}),
              ElementsAre(1, 1, 2, 2, 2));
  EXPECT_THAT(known("Pad", {floats("c0", {3}, {1, 2, 3}), ints_tensor("c1", {2, 1})},
                    {attr("mode", std::string("reflect"))}),
              ElementsAre(3, 2, 1, 2, 3, 2));
  EXPECT_THAT(known("Tile", {floats("c0", {1, 2}, {1, 2}), ints_tensor("c1", {2, 2})}),
              ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(known("Expand", {floats("c0", {2, 1}, {1, 2}), ints_tensor("c1", {2})}),
              ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(known("Trilu", {matrix}), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(known("Where", {tensor<uint8_t>("c0", kBool, {2}, {1, 0}), floats("c1", {2}, {1, 2}),
                              floats("c2", {1}, {9})}),
              ElementsAre(1, 9));
  EXPECT_THAT(known("ReduceSum", {matrix, ints_tensor("c1", {0})}), ElementsAre(5, 7, 9));
}

TEST(OnnxArithmetic, ValuesOfFoldedOperators) {
  const auto ints = [](const std::string& name, const std::vector<int64_t>& values) {
    return ints_tensor(name, values);
  };
  const Message a = ints("c0", {-7, 7, -7, 6}), b = ints("c1", {3, -3, -3, 3});
  EXPECT_THAT(known("Div", {a, b}), ElementsAre(-2, -2, 2, 2));
  EXPECT_THAT(known("Mod", {a, b}), ElementsAre(2, -2, -1, 0));
  EXPECT_THAT(known("Mod", {a, b}, {attr("fmod", int64_t{1})}), ElementsAre(-1, 1, -1, 0));
  EXPECT_THAT(known("Div", {ints("c0", {5}), ints("c1", {0})}), ElementsAre(-1));  // no trap
  EXPECT_THAT(known("Range",
                    {tensor<int64_t>("c0", kInt64, {}, {5}), tensor<int64_t>("c1", kInt64, {}, {0}),
                     tensor<int64_t>("c2", kInt64, {}, {-2})}),
              ElementsAre(5, 3, 1));
  EXPECT_THAT(known("Pow", {floats("c0", {2}, {2, 3}), floats("c1", {}, {2})}), ElementsAre(4, 9));
  EXPECT_THAT(known("Clip", {floats("c0", {3}, {-1, 0.5, 3}), floats("c1", {}, {0}),
                             floats("c2", {}, {1})}),
              ElementsAre(0, 0.5, 1));
  EXPECT_THAT(known("Clip", {floats("c0", {2}, {-1, 3})}, {attr("min", 0.0)}, 6 + 1),
              ElementsAre(0, 3));
  EXPECT_THAT(known("Cast", {floats("c0", {3}, {0, -2.5, 2})}, {attr("to", int64_t{kBool})}),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(known("OneHot", {ints("c0", {1, -1}), tensor<int64_t>("c1", kInt64, {}, {3}),
                               floats("c2", {2}, {0, 5})}),
              ElementsAre(0, 5, 0, 0, 0, 5));
  EXPECT_THAT(known("Min", {floats("c0", {2}, {1, 5}), floats("c1", {1}, {3})}), ElementsAre(1, 3));
}

TEST(OnnxReshape, RulesOfItsShape) {
  EXPECT_EQ(shape_of(one("Reshape", {{"2", "3", "4"}}, {}, {{0, -1}})), "f32[2,12]");
  EXPECT_EQ(shape_of(one("Reshape", {{"0", "3"}}, {attr("allowzero", int64_t{1})}, {{3, 0}})),
            "f32[3,0]");
  EXPECT_THAT(refusal("Reshape", {{"2", "3"}}, {}, {{-1, -1}}), HasSubstr("has two -1"));
  EXPECT_THAT(refusal("Reshape", {{"2", "3"}}, {}, {{-1, 4}}), HasSubstr("does not divide"));
  EXPECT_THAT(refusal("Reshape", {{"2", "3"}}, {}, {{7}}),
              HasSubstr("a different number of elements"));
  EXPECT_THAT(refusal("Reshape", {{"6"}}, {}, {{1, 0}}), HasSubstr("where data has no dimension"));
  EXPECT_THAT(refusal("Reshape", {{"2", "3"}}, {}, {{-2}}), HasSubstr("negative dimension"));
  EXPECT_THAT(refusal("Reshape", {{"2", "3"}}, {}, {{INT64_MAX, INT64_MAX}}),
              HasSubstr("too large"));
}

TEST(OnnxSqueeze, AxesAreAttributesThenInputs) {
  EXPECT_EQ(shape_of(one("Squeeze", {{"1", "3", "1"}})), "f32[3]");
  EXPECT_EQ(shape_of(one("Squeeze", {{"1", "3", "1"}}, {}, {{-1}})), "f32[1,3]");
  EXPECT_EQ(shape_of(one("Squeeze", {{"1", "3"}}, {attr("axes", Ints{0})}, {}, 11)), "f32[3]");
  EXPECT_EQ(shape_of(one("Unsqueeze", {{"3"}}, {}, {{0, -1}})), "f32[1,3,1]");
  EXPECT_THAT(refusal("Squeeze", {{"1", "3"}}, {}, {{1}}),
              HasSubstr("dimension 1 of [1,3] is not 1"));
  EXPECT_THAT(refusal("Unsqueeze", {{"3"}}, {}, {{0, 0}}), HasSubstr("twice"));
}

TEST(OnnxSplit, PartsMustSum) {
  Model model = one_node("Split", {{"5"}}, {}, {{2, 3}});
  model.nodes = {node("Split", {"x0", "c1"}, {"a", "b"})};
  model.outputs = {"a", "b"};
  EXPECT_EQ(shape_of(imported(model.import()), 1), "f32[3]");
  model.constants = {ints_tensor("c1", {2, 2})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("do not sum to 5"));
  model.constants = {ints_tensor("c1", {-1, 6})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("do not sum to 5"));
  model.constants = {ints_tensor("c1", {5})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("1 sizes for 2 outputs"));
}

TEST(OnnxGather, KnownPositionsAreSlices) {
  Model model = one_node("Gather", {{"2", "5", "4"}}, {attr("axis", int64_t{1})}, {});
  model.constants = {tensor<int64_t>("c", kInt64, {}, {-1})};
  model.nodes = {node("Gather", {"x0", "c"}, {"y"}, {attr("axis", int64_t{1})})};
  const Imported result = imported(model.import());
  EXPECT_EQ(shape_of(result), "f32[2,4]");
  EXPECT_EQ(count(result, Opcode::gather), 0);
  EXPECT_THAT(find(result, Opcode::slice)->attrs_as<hlo::SliceAttrs>().starts,
              ElementsAre(0, 4, 0));
  EXPECT_THAT(refusal("Gather", {{"5"}}, {}, {{0, 7, 1}}), HasSubstr("index 7 is out of range"));
}

TEST(OnnxTranspose, NeedsAPermutation) {
  EXPECT_THAT(refusal("Transpose", {{"2", "3"}}, {attr("perm", Ints{0, 0})}),
              HasSubstr("not a permutation"));
  EXPECT_THAT(refusal("Transpose", {{"2", "3"}}, {attr("perm", Ints{1, 2})}),
              HasSubstr("not a permutation"));
  EXPECT_THAT(refusal("Transpose", {{"2", "3"}}, {attr("perm", Ints{0})}),
              HasSubstr("not a permutation"));
}

TEST(OnnxConv, AttributesAreChecked) {
  EXPECT_EQ(shape_of(one("Conv", {{"1", "4", "8", "8"}, {"6", "2", "3", "3"}, {"6"}},
                         {attr("group", int64_t{2}), attr("strides", Ints{2, 1}),
                          attr("pads", Ints{1, 1, 1, 1}), attr("dilations", Ints{1, 2})})),
            "f32[1,6,4,6]");
  EXPECT_EQ(
      shape_of(one("Conv", {{"1", "1", "5", "5"}, {"1", "1", "3", "3"}},
                   {attr("auto_pad", std::string("SAME_UPPER")), attr("strides", Ints{2, 2})})),
      "f32[1,1,3,3]");
  const auto refused = [](const std::vector<Message>& attributes) {
    return refusal("Conv", {{"1", "4", "8", "8"}, {"6", "4", "3", "3"}}, attributes);
  };
  EXPECT_THAT(refused({attr("group", int64_t{0})}), HasSubstr("group 0 does not divide"));
  EXPECT_THAT(refused({attr("group", int64_t{3})}), HasSubstr("group 3 does not divide"));
  EXPECT_THAT(refused({attr("group", int64_t{2})}), HasSubstr("wanted 2 input channels"));
  EXPECT_THAT(refused({attr("strides", Ints{0, 1})}), HasSubstr("strides [0,1] must be positive"));
  EXPECT_THAT(refused({attr("dilations", Ints{1, -1})}), HasSubstr("must be positive"));
  EXPECT_THAT(refused({attr("dilations", Ints{9, 1})}), HasSubstr("a window of 19"));
  EXPECT_THAT(refused({attr("kernel_shape", Ints{5, 5})}), HasSubstr("kernel_shape is [5,5]"));
  EXPECT_THAT(refused({attr("pads", Ints{-1, 0, 0, 0})}), HasSubstr("must not be negative"));
  EXPECT_THAT(refused({attr("auto_pad", std::string("SOME"))}), HasSubstr("auto_pad is 'SOME'"));
  EXPECT_THAT(refusal("MaxPool", {{"1", "1", "4", "4"}}), HasSubstr("kernel_shape has 0 entries"));
  EXPECT_THAT(refusal("Conv", {{"1", "4", "8"}, {"6", "4", "3", "3"}}),
              HasSubstr("as many dimensions"));
}

TEST(OnnxConvTranspose, ShapesOfItsOutput) {
  EXPECT_EQ(shape_of(one("ConvTranspose", {{"1", "4", "5", "5"}, {"4", "3", "3", "3"}},
                         {attr("strides", Ints{2, 2}), attr("pads", Ints{1, 1, 1, 1}),
                          attr("output_padding", Ints{1, 1})})),
            "f32[1,3,10,10]");
  EXPECT_EQ(shape_of(one("ConvTranspose", {{"1", "4", "5"}, {"4", "3", "3"}},
                         {attr("group", int64_t{2}), attr("output_shape", Ints{12}),
                          attr("strides", Ints{2})})),
            "f32[1,6,12]");
}

TEST(OnnxEinsum, BecomesDots) {
  const auto einsum = [](const std::string& equation, const std::vector<Strings>& shapes) {
    return one_node("Einsum", shapes, {attr("equation", equation)}).import();
  };
  const Imported attention =
      imported(einsum("bqhd,bkhd->bhqk", {{"2", "5", "3", "4"}, {"2", "6", "3", "4"}}));
  EXPECT_EQ(shape_of(attention), "f32[2,3,5,6]");
  EXPECT_EQ(count(attention, Opcode::dot), 1);
  EXPECT_EQ(count(attention, Opcode::transpose), 0);
  EXPECT_EQ(shape_of(imported(einsum("...ij,...jk->...ik", {{"2", "3", "4"}, {"4", "5"}}))),
            "f32[2,3,5]");
  EXPECT_EQ(shape_of(imported(einsum("ii", {{"3", "3"}}))), "f32[]");
  EXPECT_EQ(shape_of(imported(einsum("i,j,k->kji", {{"2"}, {"3"}, {"4"}}))), "f32[4,3,2]");
  EXPECT_THAT(error_of(einsum("ij,jk->il", {{"2", "3"}, {"3", "4"}})),
              HasSubstr("label in its result"));
  EXPECT_THAT(error_of(einsum("ij,jk->ii", {{"2", "3"}, {"3", "4"}})),
              HasSubstr("repeats a label"));
  EXPECT_THAT(error_of(einsum("i.j->i", {{"2", "3"}})), HasSubstr("where a letter is wanted"));
  EXPECT_THAT(error_of(einsum("ij->i", {{"2"}})), HasSubstr("does not fit input 0"));
  EXPECT_THAT(error_of(einsum("ij", {{"2", "3"}, {"3"}})), HasSubstr("1 terms for 2 inputs"));
  EXPECT_THAT(error_of(einsum("ij,jk", {{"2", "3"}, {"4", "5"}})), HasSubstr("dimensions 3 and 4"));
}

TEST(OnnxLrn, UsualPowersAreRoots) {
  const Message size = attr("size", int64_t{3});
  const Imported usual = one("LRN", {{"1", "8", "4", "4"}}, {size});
  EXPECT_EQ(count(usual, Opcode::power), 0);
  EXPECT_EQ(count(usual, Opcode::sqrt), 2);
  const Imported other = one("LRN", {{"1", "8", "4", "4"}}, {size, attr("beta", 0.6)});
  EXPECT_EQ(count(other, Opcode::power), 1);
}

TEST(OnnxResize, InterpolatesByNeighbours) {
  auto resized = [](const std::vector<float>& scales, const std::vector<Message>& attributes) {
    Model model = one_node("Resize", {{"1", "3", "8", "8"}});
    model.constants = {floats("s", {4}, scales)};
    model.nodes = {node("Resize", {"x0", "", "s"}, {"y"}, attributes)};
    return imported(model.import());
  };
  const Message linear = attr("mode", std::string("linear")),
                cubic = attr("mode", std::string("cubic"));
  const Imported twice = resized({1, 1, 2, 2}, {linear});
  EXPECT_EQ(shape_of(twice), "f32[1,3,16,16]");
  EXPECT_EQ(count(twice, Opcode::gather), 4);
  EXPECT_EQ(count(twice, Opcode::dot), 0);
  EXPECT_EQ(count(resized({1, 1, 1, 2}, {cubic}), Opcode::gather), 4);
  // If the number of neighbours grows with the scale it is a product.
  const Imported less = resized({1, 1, 0.25, 1}, {linear, attr("antialias", int64_t{1})});
  EXPECT_EQ(count(less, Opcode::gather), 0);
  EXPECT_EQ(count(less, Opcode::dot), 1);
}

TEST(OnnxBombs, AreRefusedBeforeTheyAreBuilt) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_THAT(refusal("Expand", {{"1"}}, {}, {{large, large}}), HasSubstr("product at most"));
  EXPECT_THAT(refusal("Tile", {{"2"}}, {}, {{large}}), HasSubstr("product at most"));
  EXPECT_THAT(refusal("ConstantOfShape", {}, {}, {{large}}), HasSubstr("product at most"));
  EXPECT_THAT(refusal("Pad", {{"2"}}, {}, {{0, large}}), HasSubstr("pads 0 and"));
  EXPECT_THAT(refusal("Add", {{"100000", "1"}, {"1", "100000"}}), HasSubstr("product at most"));
  EXPECT_THAT(refusal("MatMul", {{"100000", "1"}, {"1", "100000"}}), HasSubstr("at most"));
  Model range;
  range.constants = {tensor<int64_t>("a", kInt64, {}, {0}),
                     tensor<int64_t>("b", kInt64, {}, {INT64_MAX}),
                     tensor<int64_t>("c", kInt64, {}, {1})};
  range.nodes = {node("Range", {"a", "b", "c"}, {"y"})};
  range.outputs = {"y"};
  EXPECT_THAT(error_of(range.import()), HasSubstr("product at most"));
  Model resize = one_node("Resize", {{"1", "1", "4", "4"}});
  resize.constants = {floats("s", {4}, {1, 1, 1e9f, 1e9f})};
  resize.nodes = {node("Resize", {"x0", "", "s"}, {"y"})};
  EXPECT_THAT(error_of(resize.import()), HasSubstr("scale"));
}

TEST(OnnxTopK, KIsInRange) {
  EXPECT_THAT(refusal("TopK", {{"3"}}, {}, {{4}}), HasSubstr("k is 4 for a dimension of 3"));
  EXPECT_THAT(refusal("TopK", {{"3"}}, {}, {{-1}}), HasSubstr("k is -1"));
}

TEST(OnnxTypes, AreChecked) {
  Model model;
  model.inputs = {value("a", kFloat, {"2"}), value("b", kInt64, {"2"})};
  model.outputs = {"y"};
  model.nodes = {node("Add", {"a", "b"}, {"y"}, {}, "", "sum")};
  EXPECT_THAT(error_of(model.import()),
              HasSubstr("node 'sum' (Add): inputs 0 and 1 are f32[2] and s64[2]"));
  model.nodes = {node("And", {"a", "a"}, {"y"})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("wanted bool"));
  model.nodes = {node("Softmax", {"b"}, {"y"})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("wanted a floating point type"));
  model.nodes = {node("Exp", {"b"}, {"y"}, {}, "", "e")};
  EXPECT_THAT(error_of(model.import()), HasSubstr("node 'e' (Exp)"));
  model.nodes = {node("Gather", {"a", "a"}, {"y"})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("wanted int32 or int64"));
  model.nodes = {node("Where", {"a", "a", "a"}, {"y"})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("condition is f32[2]"));
}

TEST(OnnxTable, NamesAreFound) {
  const auto found = [](std::string_view domain, std::string_view name) {
    proto::Node node;
    node.domain = domain;
    node.op_type = name;
    return find_op(node) != nullptr;
  };
  EXPECT_TRUE(found("", "Conv"));
  EXPECT_TRUE(found("ai.onnx", "Conv"));
  EXPECT_FALSE(found("", "conv"));
  EXPECT_FALSE(found("", ""));
  EXPECT_FALSE(found("com.microsoft", "Conv"));
}

}  // namespace
}  // namespace heddle::import
