// Subgraphs of nodes, recurrent operators, and values of inputs given in advance: the resulting
// HLO. Their values are checked by tests/testdata/onnx_operators.
#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT

Message scalar(const std::string& name, int64_t value) {
  return tensor<int64_t>(name, kInt64, {}, {value});
}

Message body_graph(const std::vector<Message>& nodes, const std::vector<Message>& inputs,
                   const Strings& outputs) {
  Message graph;
  for (const Message& entry : nodes) graph.message(1, entry);
  graph.text(2, "body");
  for (const Message& entry : inputs) graph.message(11, entry);
  for (const std::string& output : outputs) graph.message(12, Message().text(1, output));
  return graph;
}

// a := a + x, `trips` times; collects the a of every trip.
Model adding_loop(bool trips_are_known, int64_t trips, const std::string& condition = "") {
  Model model;
  model.inputs = {value("x", kFloat, {"3"}), value("start", kFloat, {"3"})};
  if (trips_are_known) {
    model.constants = {scalar("trips", trips)};
  } else {
    model.inputs.push_back(value("trips", kInt64, {}));
  }
  const Message body =
      body_graph({node("Identity", {"going"}, {"still"}), node("Add", {"a", "x"}, {"next"}),
                  node("Identity", {"next"}, {"seen"})},
                 {value("i", kInt64, {}), value("going", kBool, {}), value("a", kFloat, {"3"})},
                 {"still", "next", "seen"});
  model.nodes = {
      node("Loop", {"trips", condition, "start"}, {"last", "all"}, {graph_attr("body", body)})};
  model.outputs = {"last", "all"};
  return model;
}

TEST(OnnxLoop, IsAWhileWithRoomForWhatItCollects) {
  const Imported result = imported(adding_loop(true, 50).import());
  EXPECT_EQ(count(result, Opcode::while_), 1);
  EXPECT_EQ(shape_of(result, 0), "f32[3]");
  EXPECT_EQ(shape_of(result, 1), "f32[50,3]");
}

TEST(OnnxLoop, AShortOneIsWrittenOut) {
  const Imported result = imported(adding_loop(true, 2).import());
  EXPECT_EQ(count(result, Opcode::while_), 0);
  EXPECT_EQ(count(result, Opcode::add), 2);
  EXPECT_EQ(shape_of(result, 1), "f32[2,3]");
}

TEST(OnnxLoop, NoTripsGiveNothing) {
  const Imported result = imported(adding_loop(true, 0).import());
  EXPECT_EQ(shape_of(result, 1), "f32[0,3]");
}

TEST(OnnxLoop, ItsConditionIsABool) {
  Model model = adding_loop(true, 50, "one");
  model.constants.push_back(scalar("one", 1));
  EXPECT_THAT(error_of(model.import()), HasSubstr("its condition is s64[], wanted one bool"));
}

TEST(OnnxLoop, ACountThatIsNotKnownBoundsNoOutput) {
  Model model = adding_loop(false, 0);
  EXPECT_THAT(error_of(model.import()), HasSubstr("the trip count must be known"));
  Options options;
  options.hints["trips"] = tensor::Literal(tensor::Shape::scalar(tensor::Type::s64));
  options.hints["trips"].set_s64(0, 9);
  const Imported bound = imported(model.import(options));
  ASSERT_EQ(bound.bound.size(), 1u);
  EXPECT_EQ(bound.bound[0].name, "trips");
  EXPECT_EQ(bound.bound[0].place, 2);
  EXPECT_THAT(bound.input_names, ElementsAre("x", "start"));
  EXPECT_EQ(shape_of(bound, 1), "f32[9,3]");
  // Without collected outputs the loop may have any length.
  const Message body =
      body_graph({node("Identity", {"going"}, {"still"}), node("Add", {"a", "x"}, {"next"})},
                 {value("i", kInt64, {}), value("going", kBool, {}), value("a", kFloat, {"3"})},
                 {"still", "next"});
  model.nodes = {node("Loop", {"trips", "", "start"}, {"last"}, {graph_attr("body", body)})};
  model.outputs = {"last"};
  EXPECT_EQ(count(imported(model.import()), Opcode::while_), 1);
}

TEST(OnnxLoop, GrowingValuesAreWrittenOut) {
  Model model = adding_loop(true, 6);
  const Message body =
      body_graph({node("Identity", {"going"}, {"still"}),
                  node("Concat", {"a", "x"}, {"next"}, {attr("axis", int64_t{0})})},
                 {value("i", kInt64, {}), value("going", kBool, {}), value("a", kFloat, {""})},
                 {"still", "next"});
  model.nodes = {node("Loop", {"trips", "", "start"}, {"last"}, {graph_attr("body", body)})};
  model.outputs = {"last"};
  EXPECT_EQ(shape_of(imported(model.import())), "f32[21]");
}

// Slices with a moving start and a fixed size, as exporters write bags of embeddings.
TEST(OnnxLoop, CutsMayMoveFromTripToTrip) {
  Model model;
  model.inputs = {value("x", kFloat, {"12"})};
  model.constants = {scalar("trips", 6), ints_tensor("from", {0, 2, 4, 6, 8, 10}),
                     ints_tensor("to", {2, 4, 6, 8, 10, 12}), ints_tensor("axis", {0})};
  const Message body = body_graph(
      {node("Gather", {"from", "i"}, {"a"}), node("Gather", {"to", "i"}, {"b"}),
       node("Unsqueeze", {"a", "axis"}, {"u"}), node("Unsqueeze", {"b", "axis"}, {"v"}),
       node("Slice", {"x", "u", "v", "axis"}, {"cut"}), node("Identity", {"going"}, {"still"})},
      {value("i", kInt64, {}), value("going", kBool, {})}, {"still", "cut"});
  model.nodes = {node("Loop", {"trips"}, {"all"}, {graph_attr("body", body)})};
  model.outputs = {"all"};
  const Imported result = imported(model.import());
  EXPECT_EQ(count(result, Opcode::while_), 1);
  EXPECT_EQ(shape_of(result), "f32[6,2]");
  // With several sizes there is no such slice: the loop is unrolled, or refused if that fails.
  model.constants[2] = ints_tensor("to", {3, 4, 6, 8, 10, 12});
  EXPECT_THAT(error_of(model.import()), HasSubstr("not of one shape in all trips"));
}

TEST(OnnxLoop, WithoutAnEndIsRefused) {
  Model model = adding_loop(true, 5);
  const Message body =
      body_graph({node("Identity", {"going"}, {"still"}), node("Add", {"a", "x"}, {"next"})},
                 {value("i", kInt64, {}), value("going", kBool, {}), value("a", kFloat, {"3"})},
                 {"still", "next"});
  model.nodes = {node("Loop", {"", "", "start"}, {"last"}, {graph_attr("body", body)})};
  model.outputs = {"last"};
  EXPECT_THAT(error_of(model.import()),
              HasSubstr("no trip count and its condition is always true"));
}

// As torch writes bags of embeddings: no trip count, but a counter that the condition tests.
TEST(OnnxLoop, SequencesAreCarriedAsLongAsTheConditionIsKnown) {
  Model model;
  model.inputs = {value("x", kFloat, {"5", "3"})};
  model.constants = {scalar("zero", 0), scalar("one", 1), scalar("end", 5),
                     ints_tensor("axis", {0})};
  model.nodes = {node("SequenceEmpty", {}, {"none"}), node("Less", {"zero", "end"}, {"first"})};
  const Message body = body_graph(
      {node("Gather", {"x", "at"}, {"row"}), node("SequenceInsert", {"rows", "row"}, {"more"}),
       node("Add", {"at", "one"}, {"next"}), node("Less", {"next", "end"}, {"going_on"})},
      {value("i", kInt64, {}), value("going", kBool, {}), value("rows", kFloat, {}),
       value("at", kInt64, {})},
      {"going_on", "more", "next"});
  model.nodes.push_back(node("Loop", {"", "first", "none", "zero"}, {"rows_out", "last"},
                             {graph_attr("body", body)}));
  model.nodes.push_back(
      node("ConcatFromSequence", {"rows_out"}, {"y"}, {attr("axis", int64_t{0})}));
  model.outputs = {"y"};
  const Imported result = imported(model.import());
  EXPECT_EQ(count(result, Opcode::while_), 0);
  EXPECT_EQ(shape_of(result), "f32[15]");
  // If the end depends on an input the trip count is unknown.
  model.constants.erase(model.constants.begin() + 2);
  model.inputs.push_back(value("end", kInt64, {}));
  EXPECT_NE(error_of(model.import()), "");
}

TEST(OnnxIf, BranchesOfOtherShapesNeedTheCondition) {
  Model model;
  model.inputs = {value("x", kFloat, {"4"}), value("c", kBool, {})};
  const Message then = body_graph({node("Relu", {"x"}, {"t"})}, {}, {"t"});
  const Message other = body_graph({node("ReduceSum", {"x"}, {"e"})}, {}, {"e"});
  model.nodes = {node("If", {"c"}, {"y"},
                      {graph_attr("then_branch", then), graph_attr("else_branch", other)})};
  model.outputs = {"y"};
  EXPECT_THAT(error_of(model.import()), HasSubstr("f32[4] in one branch and f32[1] in the other"));
  Options options;
  options.hints["c"] = tensor::Literal(tensor::Shape::scalar(tensor::Type::pred));
  EXPECT_EQ(shape_of(imported(model.import(options))), "f32[1]");
}

TEST(OnnxSequence, IsAnInputByItsElements) {
  Model model;
  const Message element = Message().message(1, Message().number(1, kFloat));
  const Message type = Message().message(4, Message().message(1, element));
  model.inputs = {Message().text(1, "s").message(2, type)};
  model.constants = {scalar("one", 1)};
  model.nodes = {node("SequenceAt", {"s", "one"}, {"y"}), node("SequenceErase", {"s"}, {"rest"})};
  model.outputs = {"y", "rest"};
  Options options;
  const auto f32 = [](const Ints& extents) {
    return tensor::Shape::array(tensor::Type::f32, extents);
  };
  options.sequences["s"] = {f32({2}), f32({3}), f32({4})};
  const Imported result = imported(model.import(options));
  EXPECT_THAT(result.input_names, ElementsAre("s#0", "s#1", "s#2"));
  EXPECT_THAT(result.output_names, ElementsAre("y", "rest#0", "rest#1"));
  EXPECT_EQ(shape_of(result, 0), "f32[3]");
}

Model lstm(const std::string& times) {
  Model model;
  model.inputs = {value("x", kFloat, {times, "2", "3"})};
  model.constants = {tensor<float>("w", kFloat, {1, 16, 3}, std::vector<float>(48, 0.5f)),
                     tensor<float>("r", kFloat, {1, 16, 4}, std::vector<float>(64, 0.25f))};
  model.nodes = {node("LSTM", {"x", "w", "r"}, {"y", "last"}, {attr("hidden_size", int64_t{4})})};
  model.outputs = {"y", "last"};
  return model;
}

TEST(OnnxLstm, ProjectsTheInputOnceOutsideTheLoop) {
  const Imported result = imported(lstm("30").import());
  EXPECT_EQ(shape_of(result, 0), "f32[30,1,2,4]");
  EXPECT_EQ(count(result, Opcode::dot), 1);
  const Instr* loop = find(result, Opcode::while_);
  int64_t dots = 0, constants = 0;
  for (const Instr* instr : loop->called()[1]->instrs()) {
    dots += instr->is(Opcode::dot) ? 1 : 0;
    constants += instr->is(Opcode::constant) && instr->shape().elems() == 64 ? 1 : 0;
  }
  EXPECT_EQ(dots, 1);
  EXPECT_EQ(constants, 1);  // the weights belong to the body, not to the state
}

TEST(OnnxLstm, AShortSequenceIsWrittenOut) {
  const Imported result = imported(lstm("3").import());
  EXPECT_EQ(count(result, Opcode::while_), 0);
  EXPECT_EQ(count(result, Opcode::dot), 4);
}

}  // namespace
}  // namespace heddle::import
