// ai.onnx.ml: errors. Values are checked by tests/testdata/onnx_ml.
#include "import/onnx_test_util.h"

namespace heddle::import {
namespace {

using ::testing::HasSubstr;
using namespace testing;  // NOLINT

struct Trees {
  Strings modes{"BRANCH_LEQ", "LEAF", "LEAF"};
  Ints trees{0, 0, 0}, ids{0, 1, 2}, features{0, 0, 0}, yes{1, 0, 0}, no{2, 0, 0};
  std::vector<float> values{0.5f, 0, 0};
  Ints weight_nodes{1, 2}, targets{0, 0};
  std::string transform = "NONE";

  Result<Imported> import() const {
    Model model;
    model.inputs = {value("x", kFloat, {"5", "2"})};
    model.other_opsets = {{"ai.onnx.ml", 3}};
    model.nodes = {
        node("TreeEnsembleRegressor", {"x"}, {"y"},
             {attr("nodes_modes", modes), attr("nodes_treeids", trees), attr("nodes_nodeids", ids),
              attr("nodes_featureids", features), attr("nodes_truenodeids", yes),
              attr("nodes_falsenodeids", no), attr("nodes_values", values),
              attr("post_transform", transform), attr("target_treeids", Ints(targets.size(), 0)),
              attr("target_nodeids", weight_nodes), attr("target_ids", targets),
              attr("target_weights", std::vector<float>(targets.size(), 1))},
             "ai.onnx.ml")};
    model.outputs = {"y"};
    return model.import();
  }
};

TEST(OnnxTrees, AreGathersAndCompares) {
  const Imported result = imported(Trees().import());
  EXPECT_EQ(shape_of(result), "f32[5,1]");
  EXPECT_EQ(count(result, Opcode::gather), 4);  // threshold, pair, feature; the leaf's weight
}

TEST(OnnxTrees, DamageIsAnError) {
  const auto error = [](auto change) {
    Trees trees;
    change(trees);
    return error_of(trees.import());
  };
  EXPECT_THAT(error([](Trees& t) { t.yes[0] = 0; }), HasSubstr("in a circle"));
  EXPECT_THAT(error([](Trees& t) { t.yes[0] = 9; }), HasSubstr("child 9, which is not there"));
  EXPECT_THAT(error([](Trees& t) { t.features[0] = 2; }), HasSubstr("tests feature 2"));
  EXPECT_THAT(error([](Trees& t) { t.features[0] = -1; }), HasSubstr("tests feature -1"));
  EXPECT_THAT(error([](Trees& t) { t.targets[1] = 1; }), HasSubstr("adds to target 1"));
  EXPECT_THAT(error([](Trees& t) { t.weight_nodes[1] = 7; }), HasSubstr("node 7 of tree 0"));
  EXPECT_THAT(error([](Trees& t) { t.ids[2] = 1; }), HasSubstr("is there twice"));
  EXPECT_THAT(error([](Trees& t) { t.modes[0] = "BRANCH"; }), HasSubstr("node mode 'BRANCH'"));
  EXPECT_THAT(error([](Trees& t) { t.values.pop_back(); }), HasSubstr("nodes_values has 2"));
  EXPECT_THAT(error([](Trees& t) { t.transform = "TANH"; }), HasSubstr("post_transform is 'TANH'"));
}

// Nodes shared by two parents: expanded to a tree there would be 2^40 leaves.
TEST(OnnxTrees, SharedNodesStandOnce) {
  constexpr int64_t kDepth = 40;
  Trees t;
  t.modes.assign(kDepth, "BRANCH_LEQ");
  t.modes.push_back("LEAF");
  t.trees.assign(kDepth + 1, 0);
  t.features.assign(kDepth + 1, 1);
  t.values.assign(kDepth + 1, 0.25f);
  t.ids.clear();
  for (int64_t i = 0; i <= kDepth; ++i) t.ids.push_back(i);
  t.yes = t.ids;
  for (int64_t& next : t.yes) next = std::min(next + 1, kDepth);
  t.no = t.yes;
  t.weight_nodes = {kDepth};
  t.targets = {0};
  const Imported result = imported(t.import());
  EXPECT_EQ(count(result, Opcode::gather), 3 * kDepth + 1);
}

}  // namespace
}  // namespace heddle::import
