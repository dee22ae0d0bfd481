// Whole models: names, dimensions, preflight, folding, branches, functions, errors.
#include <fmt/format.h>

#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;  // NOLINT

Model relu(const Strings& dims) { return one_node("Relu", {dims}); }

TEST(OnnxGraph, InputsOutputsAndTheirNames) {
  Model model;
  model.inputs = {value("a/1", kFloat, {"2"}), value("b", kInt64, {"2"})};
  model.nodes = {node("Cast", {"b"}, {"c"}, {attr("to", int64_t{1})}),
                 node("Add", {"a/1", "c"}, {"sum"})};
  model.outputs = {"sum", "b"};
  const Imported result = imported(model.import());
  EXPECT_THAT(result.input_names, ElementsAre("a/1", "b"));
  EXPECT_THAT(result.input_aliases, ElementsAre("", ""));
  EXPECT_THAT(result.output_names, ElementsAre("sum", "b"));
  EXPECT_THAT(result.notes, IsEmpty());
  const hlo::Computation& entry = *result.module->entry();
  ASSERT_EQ(entry.parameters().size(), 2u);
  EXPECT_EQ(entry.parameters()[0]->name(), "a_1");
  EXPECT_TRUE(entry.root()->is(Opcode::tuple));
  EXPECT_EQ(shape_of(result, 0), "f32[2]");
  EXPECT_EQ(entry.root()->operand(1), entry.parameters()[1]);
}

// Shape arithmetic is folded at import, and reshapes merge: the remaining instructions get the
// names.
TEST(OnnxGraph, NodesThatVanishLeaveTheirNames) {
  Model model = relu({"2", "3", "4"});
  model.nodes = {node("Shape", {"x0"}, {"shape"}, {}, "", "the shape"),
                 node("Flatten", {"x0"}, {"flat"}, {}, "", "flatten"),
                 node("Identity", {"flat"}, {"same"}),
                 node("Reshape", {"same", "shape"}, {"back"}, {}, "", "reshape"),
                 node("Flatten", {"back"}, {"row"}, {attr("axis", int64_t{0})}, "", "row"),
                 node("Tanh", {"row"}, {"y"}, {}, "", "tanh")};
  const Imported result = imported(model.import());
  EXPECT_THAT(find(result, Opcode::reshape)->nodes().list(),
              ::testing::UnorderedElementsAre("row", "reshape", "the shape", "flatten", "same"));
  EXPECT_THAT(find(result, Opcode::tanh)->nodes().list(), ElementsAre("tanh"));
}

TEST(OnnxGraph, InstructionsSayWhereTheyAreFrom) {
  Model model = relu({"2"});
  model.nodes = {node("Tanh", {"x0"}, {"y"}, {}, "", "a \"b\"")};
  const Imported result = imported(model.import());
  const Instr* tanh = find(result, Opcode::tanh);
  ASSERT_EQ(tanh->annotations().size(), 1u);
  EXPECT_EQ(tanh->annotations()[0].second, "{op_type=\"Tanh\"}");
  EXPECT_THAT(tanh->nodes().list(), ElementsAre("a \"b\""));
  // The printed text can be parsed again.
  const auto parsed = hlo::parse_module(hlo::to_string(*result.module));
  EXPECT_TRUE(parsed) << parsed.error().message;
}

TEST(OnnxGraph, InitialisersListedAsInputsAreConstants) {
  Model model = one_node("Add", {{"2"}, {"2"}});
  model.constants = {tensor<float>("x1", kFloat, {2}, {1, 2})};
  EXPECT_THAT(imported(model.import()).input_names, ElementsAre("x0"));
}

TEST(OnnxDims, UnboundOnesAreOneAndNoted) {
  const Imported result = imported(relu({"batch", "3", ""}).import());
  EXPECT_EQ(shape_of(result), "f32[1,3,1]");
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("dimension 'batch' is dynamic: bound to 1"),
                                        HasSubstr("dimension 2 of input 'x0'")));
}

TEST(OnnxDims, AreBoundByNameByShapeAndByExpression) {
  Model model;
  model.inputs = {value("ids", kFloat, {"batch", "new"}), value("past", kFloat, {"batch", "old"}),
                  value("mask", kFloat, {"batch", "old + 2*new"})};
  model.nodes = {node("Identity", {"mask"}, {"y"})};
  model.outputs = {"y"};
  Options options;
  options.dims = {{"old", 5}};
  options.shapes = {{"ids", {3, 2}}};
  const Imported result = imported(model.import(options));
  EXPECT_EQ(shape_of(result), "f32[3,9]");
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(OnnxDims, MistakesAreErrors) {
  Options wrong_name, wrong_input, wrong_rank, wrong_size, conflict;
  wrong_name.dims = {{"bach", 2}};
  wrong_input.shapes = {{"y", {1, 2}}};
  wrong_rank.shapes = {{"x0", {1}}};
  wrong_size.shapes = {{"x0", {1, 4}}};
  conflict.dims = {{"batch", 2}};
  conflict.shapes = {{"x0", {3, 3}}};
  const Model model = relu({"batch", "3"});
  EXPECT_THAT(error_of(model.import(wrong_name)), HasSubstr("no such dimension; it has batch"));
  EXPECT_THAT(error_of(model.import(wrong_input)), HasSubstr("no such input; it has x0"));
  EXPECT_THAT(error_of(model.import(wrong_rank)), HasSubstr("1 dimensions, the input has 2"));
  EXPECT_THAT(error_of(model.import(wrong_size)), HasSubstr("is 4, the model fixes it at 3"));
  EXPECT_THAT(error_of(model.import(conflict)), HasSubstr("'batch' is 2 and"));
  Options negative;
  negative.dims = {{"batch", -2}};
  EXPECT_THAT(error_of(model.import(negative)), HasSubstr("0 or more"));
  EXPECT_THAT(error_of(relu({"-3"}).import()), HasSubstr("0 or more"));
  EXPECT_THAT(error_of(relu({"4000000000", "4000000000", "4000000000"}).import()),
              HasSubstr("their product at most"));
}

TEST(OnnxDims, AFixedValueIsNoParameter) {
  Model model;
  model.inputs = {value("x", kFloat, {"2", "3"}), value("shape", kInt64, {"n"})};
  model.nodes = {node("Reshape", {"x", "shape"}, {"y"})};
  model.outputs = {"y"};
  EXPECT_THAT(error_of(model.import()), HasSubstr("must be known"));
  Options options;
  tensor::Literal shape(tensor::Shape::array(tensor::Type::s64, {2}));
  shape.set_s64(0, -1);
  shape.set_s64(1, 2);
  options.values = {{"shape", shape}};
  const Imported result = imported(model.import(options));
  EXPECT_THAT(result.input_names, ElementsAre("x"));
  EXPECT_EQ(shape_of(result), "f32[3,2]");
}

TEST(OnnxPreflight, ListsEverythingAtOnce) {
  Model model = relu({"2"});
  model.other_opsets = {{"com.microsoft", 1}};
  model.nodes = {node("Roll", {"x0"}, {"a"}, {}, "", "l1"), node("Roll", {"a"}, {"b"}),
                 node("Irfft", {"b"}, {"y"}, {}, "com.microsoft", "f")};
  const std::string error = error_of(model.import());
  EXPECT_THAT(error, HasSubstr("3 nodes cannot be imported"));
  EXPECT_THAT(error, HasSubstr("Roll, opset 17 (2 nodes, first: node 'l1' (Roll))"));
  EXPECT_THAT(error, HasSubstr("com.microsoft.Irfft, opset 1 (1 node, first: node 'f'"));
}

TEST(OnnxErrors, CallersTellKindsApart) {
  Model model = relu({"2"});
  model.nodes = {node("Roll", {"x0"}, {"y"})};
  EXPECT_EQ(model.import().error().kind, ErrorKind::unsupported);
  model = relu({"2", "3"});
  model.nodes = {node("MatMul", {"x0", "x0"}, {"y"})};
  EXPECT_EQ(model.import().error().kind, ErrorKind::shape);
  model.nodes = {node("NonZero", {"x0"}, {"y"})};
  EXPECT_EQ(model.import().error().kind, ErrorKind::value);
  model.nodes = {node("Relu", {"nothing"}, {"y"})};
  EXPECT_EQ(model.import().error().kind, ErrorKind::user);
}

TEST(OnnxPreflight, OpsetsHaveLimits) {
  Model model = relu({"2"});
  for (int64_t opset : {1, 13, 28}) {
    model.opset = opset;
    EXPECT_TRUE(model.import()) << opset;
  }
  model.opset = 0;
  EXPECT_THAT(error_of(model.import()),
              HasSubstr("opset 0 of ai.onnx is not supported, wanted 1 to 28"));
  model.opset = 29;
  EXPECT_THAT(error_of(model.import()), HasSubstr("opset 29"));
  EXPECT_THAT(
      error_of(import_onnx_bytes(Message().number(1, 8).message(7, model.graph()).bytes(), "")),
      HasSubstr("imports no opset"));
  EXPECT_THAT(error_of(import_onnx_bytes(Message().number(1, 8).bytes(), "")),
              HasSubstr("no graph"));
}

TEST(OnnxGraph, DamagedGraphsAreRefused) {
  const auto with_nodes = [](const std::vector<Message>& nodes, const Strings& outputs = {"y"}) {
    Model model = relu({"2"});
    model.nodes = nodes;
    model.outputs = outputs;
    return error_of(model.import());
  };
  EXPECT_THAT(with_nodes({node("Relu", {"a"}, {"y"}), node("Relu", {"x0"}, {"a"})}),
              HasSubstr("input 'a' is not defined before it is used"));
  EXPECT_THAT(with_nodes({node("Relu", {"y"}, {"y"})}), HasSubstr("'y' is not defined before"));
  EXPECT_THAT(with_nodes({node("Relu", {"x0"}, {"y"}), node("Relu", {"x0"}, {"y"})}),
              HasSubstr("value 'y' is defined twice"));
  EXPECT_THAT(with_nodes({node("Relu", {"x0"}, {"z"})}), HasSubstr("output 'y' is not produced"));
  EXPECT_THAT(with_nodes({node("Add", {"x0"}, {"y"})}), HasSubstr("1 inputs, wanted 2"));
  EXPECT_THAT(with_nodes({node("Add", {"", "x0"}, {"y"})}), HasSubstr("input 0 is missing"));
  EXPECT_THAT(with_nodes({node("Relu", {"x0", "x0"}, {"y"})}), HasSubstr("2 inputs, wanted 1"));
  EXPECT_THAT(with_nodes({node("Relu", {"x0"}, {"y", "z"})}), HasSubstr("output 1 ('z')"));
  EXPECT_THAT(with_nodes({node("Relu", {"x0"}, {"y"}, {attr("axis", int64_t{1})}, "", "n")}),
              HasSubstr("node 'n' (Relu): attribute 'axis' is not one of this operator's"));
  EXPECT_THAT(with_nodes({node("Softmax", {"x0"}, {"y"}, {attr("axis", 1.0)})}),
              HasSubstr("attribute 'axis' has type 1, wanted INT"));
  EXPECT_THAT(with_nodes({node("Relu", {"x0"}, {"y"})}, {}), HasSubstr("no outputs"));
  EXPECT_THAT(with_nodes({node("Relu\n", {"x0"}, {"y"})}), HasSubstr("Relu\\x0a"));
}

TEST(OnnxGraph, InputsHaveKinds) {
  Model model = relu({"2"});
  model.inputs = {Message().text(1, "x0").message(2, Message().message(4, Message()))};
  EXPECT_THAT(error_of(model.import()), HasSubstr("input 'x0' is a sequence; the number"));
  model.inputs = {Message().text(1, "x0").message(2, Message().message(5, Message()))};
  EXPECT_THAT(error_of(model.import()), HasSubstr("input 'x0' is a map; only tensors"));
  model.inputs = {Message().text(1, "x0")};
  EXPECT_THAT(error_of(model.import()), HasSubstr("a value without a type"));
  model.inputs = {value("x0", kString, {"2"})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("an input holds strings"));
  model.inputs = {value("x0", kFloat, {"2"}), value("x0", kFloat, {"2"})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("appears twice"));
}

TEST(OnnxGraph, ElementsOfASequenceAreGivenByNumber) {
  const Message element = Message().message(1, Message().number(1, kFloat));
  const Message sequence = Message().message(4, Message().message(1, element));
  Model model;
  model.inputs = {Message().text(1, "s").message(2, sequence)};
  model.constants = {tensor<int64_t>("one", kInt64, {}, {1})};
  model.nodes = {node("SequenceAt", {"s", "one"}, {"y"})};
  model.outputs = {"y"};
  Options options;
  options.shapes = {{"s#0", {2}}, {"s#1", {3, 4}}};
  options.shapes_of_values = {"s#0", "s#1"};
  const Imported result = imported(model.import(options));
  EXPECT_THAT(result.input_names, ::testing::ElementsAre("s#0", "s#1"));
  EXPECT_EQ(shape_of(result), "f32[3,4]");
  options.shapes = {{"t#0", {2}}};
  options.shapes_of_values = {"t#0"};
  EXPECT_THAT(error_of(model.import(options)),
              HasSubstr("the value of input 't#0': the model has no such input; it has s"));
}

// The export of x.reshape(x.shape[0], -1).
TEST(OnnxFold, ShapeArithmeticLeavesNothing) {
  Model model;
  model.inputs = {value("x", kFloat, {"batch", "3", "4"})};
  model.constants = {tensor<int64_t>("zero", kInt64, {}, {0}), ints_tensor("minus_one", {-1}),
                     ints_tensor("first", {0})};
  model.nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"d"}),
                 node("Unsqueeze", {"d", "first"}, {"u"}),
                 node("Concat", {"u", "minus_one"}, {"t"}, {attr("axis", int64_t{0})}),
                 node("Reshape", {"x", "t"}, {"y"})};
  model.outputs = {"y"};
  Options options;
  options.dims = {{"batch", 2}};
  const Imported result = imported(model.import(options));
  EXPECT_EQ(shape_of(result), "f32[2,12]");
  EXPECT_EQ(result.module->entry()->instrs().size(), 3u);  // parameter, reshape, tuple
  EXPECT_EQ(result.module->computations().size(), 1u);
}

TEST(OnnxFold, LargeValuesStay) {
  Model model;
  model.constants = {ints_tensor("n", {1000, 1000})};
  model.nodes = {node("ConstantOfShape", {"n"}, {"z"}), node("Exp", {"z"}, {"y"})};
  model.outputs = {"y"};
  const Imported result = imported(model.import());
  EXPECT_EQ(count(result, Opcode::exponential), 1);
}

Model branches(bool condition) {
  Model model = relu({"2"});
  const auto branch = [](const std::string& op) {
    return Message()
        .message(1, node(op, {"x0"}, {"inner"}))
        .message(12, Message().text(1, "inner"));
  };
  model.constants = {tensor<uint8_t>("c", kBool, {}, {condition})};
  model.nodes = {
      node("If", {"c"}, {"y"},
           {graph_attr("then_branch", branch("Tanh")), graph_attr("else_branch", branch("Exp"))})};
  return model;
}

TEST(OnnxIf, TakesTheBranchThatIsKnown) {
  EXPECT_EQ(count(imported(branches(true).import()), Opcode::tanh), 1);
  EXPECT_EQ(count(imported(branches(false).import()), Opcode::exponential), 1);
  Model model = branches(true);
  model.constants.clear();
  model.inputs.push_back(value("c", kBool, {}));
  const Imported result = imported(model.import());
  EXPECT_EQ(find(result, Opcode::conditional)->called().size(), 2u);
}

// f(a; scale) = LeakyRelu(a, alpha = scale)
Model with_function(const std::vector<Message>& call_attributes) {
  Model model = relu({"2"});
  model.other_opsets = {{"mine", 1}};
  const Message reference = Message().text(1, "alpha").text(21, "scale").number(20, 1);
  model.functions = {Message()
                         .text(1, "f")
                         .text(4, "a")
                         .text(5, "b")
                         .text(6, "scale")
                         .message(7, node("LeakyRelu", {"a"}, {"b"}, {reference}))
                         .message(9, Message().text(1, "").number(2, 17))
                         .text(10, "mine")};
  model.nodes = {node("f", {"x0"}, {"y"}, call_attributes, "mine")};
  return model;
}

TEST(OnnxFunction, IsInlinedWithItsAttributes) {
  const auto slope = [](const Imported& result) {
    return find(result, Opcode::multiply)->operand(1)->operand(0)->literal().get_f64(0);
  };
  EXPECT_EQ(slope(imported(with_function({attr("scale", 0.5)}).import())), 0.5);
  EXPECT_NEAR(slope(imported(with_function({}).import())), 0.01, 1e-8);
}

TEST(OnnxFunction, RecursionIsRefused) {
  Model model = relu({"2"});
  model.other_opsets = {{"mine", 1}};
  const auto function = [](const std::string& name, const std::string& calls) {
    return Message()
        .text(1, name)
        .text(4, "a")
        .text(5, "b")
        .message(7, node(calls, {"a"}, {"b"}, {}, "mine"))
        .message(9, Message().text(1, "").number(2, 17))
        .text(10, "mine");
  };
  model.functions = {function("f", "g"), function("g", "f")};
  model.nodes = {node("f", {"x0"}, {"y"}, {}, "mine")};
  EXPECT_THAT(error_of(model.import()), HasSubstr("calls itself"));
  model.functions = {function("f", "g"), function("f", "g")};
  EXPECT_THAT(error_of(model.import()), HasSubstr("defined twice"));
}

// Functions that each call the previous one twice: 2^40 nodes from a small file.
TEST(OnnxFunction, ABombIsCounted) {
  Model model = relu({"2"});
  model.other_opsets = {{"mine", 1}};
  for (int i = 0; i < 40; ++i) {
    const std::string callee = i == 0 ? "Relu" : fmt::format("f{}", i - 1);
    const std::string domain = i == 0 ? "" : "mine";
    model.functions.push_back(Message()
                                  .text(1, fmt::format("f{}", i))
                                  .text(4, "a")
                                  .text(5, "c")
                                  .message(7, node(callee, {"a"}, {"b"}, {}, domain))
                                  .message(7, node(callee, {"b"}, {"c"}, {}, domain))
                                  .message(9, Message().text(1, "").number(2, 17))
                                  .text(10, "mine"));
  }
  model.nodes = {node("f39", {"x0"}, {"y"}, {}, "mine")};
  Options options;
  options.max_nodes = 10000;
  EXPECT_THAT(error_of(model.import(options)), HasSubstr("more than 10000 nodes"));
}

}  // namespace
}  // namespace heddle::import
