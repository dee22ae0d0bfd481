// Indices out of range in loops and branches, and of bounded dimensions.
#include <fstream>

#include "api/index_check_test_util.h"

namespace heddle::api {
namespace {

using import::testing::graph_attr;
using import::testing::kBool;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::Message;
using import::testing::node;
using import::testing::value;
using ::testing::HasSubstr;

Message graph(const std::string& name, const std::vector<Message>& inputs,
              const std::vector<Message>& nodes, const import::testing::Strings& outputs) {
  Message message;
  for (const Message& entry : nodes) message.message(1, entry);
  message.text(2, name);
  for (const Message& entry : inputs) message.message(11, entry);
  for (const std::string& entry : outputs) message.message(12, Message().text(1, entry));
  return message;
}

// Sums x[at[i]] for i below `trips`, which is an input or a constant.
OnnxModel loop(bool known) {
  const Message body = graph(
      "body", {value("i", kInt64, {}), value("c", kBool, {}), value("sum", kFloat, {"3"})},
      {node("Identity", {"c"}, {"again"}), node("Gather", {"at", "i"}, {"p"}, {}, "", "outer"),
       node("Gather", {"x", "p"}, {"row"}, {}, "", "inner"), node("Add", {"sum", "row"}, {"more"})},
      {"again", "more"});
  OnnxModel model;
  model.inputs = {value("x", kFloat, {"4", "3"}), value("at", kInt64, {"5"}),
                  value("start", kFloat, {"3"})};
  if (known) model.constants = {import::testing::tensor<int64_t>("trips", kInt64, {}, {5})};
  if (!known) model.inputs.push_back(value("trips", kInt64, {}));
  model.nodes = {node("Loop", {"trips", "", "start"}, {"y"}, {graph_attr("body", body)})};
  model.outputs = {"y"};
  return model;
}

TEST(IndexChecks, ATripDemandsWhatItTakes) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    for (const bool known : {true, false}) {
      const auto program = make_program(loop(known), way);
      ASSERT_TRUE(program) << program.error().message;
      EXPECT_EQ(run(*program, {{"trips", {5}}, {"at", {0, 3, -4, -1, 2}}}).error, "");
      EXPECT_THAT(run(*program, {{"trips", {5}}, {"at", {0, 3, 4, -1, 2}}}).error,
                  HasSubstr("computes index 4; node 'inner' (Gather) takes -4 to 3"));
      EXPECT_THAT(run(*program, {{"trips", {5}}, {"at", {0, 3, 1, -1, -5}}}).error,
                  HasSubstr("computes index -5; node 'inner'"));
    }
    // Indices that no trip uses are not checked, and none are if the loop does not run.
    const auto told = make_program(loop(false), way);
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(run(*told, {{"trips", {2}}, {"at", {0, 3, 4, 5, 6}}}).error, "");
    EXPECT_EQ(run(*told, {{"trips", {0}}, {"at", {9, 9, 9, 9, 9}}}).error, "");
    EXPECT_THAT(run(*told, {{"trips", {6}}, {"at", {0, 1, 2, 3, 0}}}).error,
                HasSubstr("computes index 5; node 'outer' (Gather) takes -5 to 4"));
  }
}

TEST(IndexChecks, ABranchThatIsNotTakenDemandsNothing) {
  OnnxModel model;
  const Message take =
      graph("then", {}, {node("Gather", {"x", "at"}, {"r"}, {}, "", "taken")}, {"r"});
  const Message other =
      graph("else", {}, {node("Gather", {"z", "at"}, {"r"}, {}, "", "other")}, {"r"});
  model.inputs = {value("x", kFloat, {"4"}), value("z", kFloat, {"9"}), value("at", kInt64, {"2"}),
                  value("on", kBool, {})};
  model.nodes = {node("If", {"on"}, {"y"},
                      {graph_attr("then_branch", take), graph_attr("else_branch", other)})};
  model.outputs = {"y"};
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    const auto program = make_program(model, way);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(run(*program, {{"on", {1}}, {"at", {3, -4}}}).error, "");
    EXPECT_THAT(run(*program, {{"on", {1}}, {"at", {3, 8}}}).error,
                HasSubstr("computes index 8; node 'taken' (Gather) takes -4 to 3"));
    EXPECT_EQ(run(*program, {{"on", {0}}, {"at", {3, 8}}}).error, "");
    EXPECT_THAT(run(*program, {{"on", {0}}, {"at", {3, 9}}}).error,
                HasSubstr("computes index 9; node 'other' (Gather) takes -9 to 8"));
  }
}

// Rows of a table by ids[length] (+ zero), and their number for each length.
OnnxModel sequence(bool computed) {
  OnnxModel model;
  model.inputs = {value("table", kFloat, {"6", "2"}), value("ids", kInt64, {"length"}),
                  value("zero", kInt64, {})};
  if (computed) model.nodes.push_back(node("Add", {"ids", "zero"}, {"moved"}));
  model.nodes.push_back(
      node("Gather", {"table", computed ? "moved" : "ids"}, {"y"}, {}, "", "emb"));
  model.outputs = {"y"};
  return model;
}

std::string run_bounded(Context& context, Ints ids, int64_t shift) {
  std::vector<float> table(12, 1.0F), y(2 * ids.size());
  EXPECT_TRUE(context.set_extent("length", std::ssize(ids)));
  EXPECT_TRUE(context.bind_input(0, table.data()));
  EXPECT_TRUE(context.bind_input(1, ids.data()));
  if (shift >= 0) {
    EXPECT_TRUE(context.bind_input(2, &shift));
  }
  EXPECT_TRUE(context.bind_output(0, y.data()));
  const Status status = context.run();
  return status ? "" : status.error().message;
}

TEST(IndexChecks, OfABoundedDimensionTheElementsThatAreThere) {
  for (const bool computed : {false, true}) {
    SCOPED_TRACE(computed ? "computed" : "input");
    const std::string path =
        testing::TempDir() + "index_bounded_" + std::to_string(::getpid()) + ".onnx";
    std::ofstream(path, std::ios::binary) << sequence(computed).bytes();
    OpenOptions bounds;
    bounds.bounds["length"] = 24;
    const std::string saved = path + ".heddle";
    for (const bool from_file : {false, true}) {
      SCOPED_TRACE(from_file ? "from a program file" : "compiled");
      auto model = Model::open(from_file ? saved : path, bounds);
      ASSERT_TRUE(model) << model.error().message;
      CompileOptions options;
      if (!from_file) options.cache = "off";
      auto program = Program::compile(**model, options);
      ASSERT_TRUE(program) << program.error().message;
      EXPECT_EQ((*program)->outputs().size(), 1u);
      auto context = (*program)->make_context();
      ASSERT_TRUE(context);
      // Bad ids of a long run must not remain after the end of a short one; with the shift, values
      // after the end would be out of range.
      for (const int64_t n : {24, 16, 11, 7, 1}) {
        Ints ids(static_cast<size_t>(n), -6);
        EXPECT_EQ(run_bounded(**context, ids, 0), "") << n;
        if (computed) {
          EXPECT_EQ(run_bounded(**context, ids, 11), "") << n;
        }
        ids.back() = 6;
        EXPECT_THAT(run_bounded(**context, ids, 0), HasSubstr("takes -6 to 5")) << n;
        if (!computed) {
          EXPECT_THAT(run_bounded(**context, ids, 0),
                      HasSubstr(fmt::format("element [{}] is 6", n - 1)));
        }
      }
      if (!from_file) {
        ASSERT_TRUE((*program)->save(saved));
      }
    }
    std::remove(saved.c_str());
    std::remove(path.c_str());
  }
}

}  // namespace
}  // namespace heddle::api
