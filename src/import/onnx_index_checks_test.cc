// Which indices are checked when: at import, before a run, after it, or never.
#include <gmock/gmock.h>

#include "import/onnx_test_util.h"

namespace heddle::import::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Checks = std::vector<tensor::IndexCheck>;

// x[4,3] float, ids[2,2], zero[1]; `nodes` give y.
Model model_of(const std::vector<Message>& nodes, DataType type = kInt64) {
  Model model;
  model.inputs = {value("x", kFloat, {"4", "3"}), value("ids", type, {"2", "2"}),
                  value("zero", type, {"1"}), value("on", kBool, {})};
  model.nodes = nodes;
  model.outputs = {"y"};
  return model;
}

Message gather(const std::string& ids) {
  return node("Gather", {"x", ids}, {"y"}, {}, "", "emb/Gather");
}

Checks checks_of(const Model& model) { return imported(model.import()).index_checks; }

TEST(OnnxIndexChecks, AnInputIsCheckedAsItIsGiven) {
  const Imported result = imported(model_of({gather("ids")}).import());
  EXPECT_EQ(result.index_checks, (Checks{{"node 'emb/Gather' (Gather)", {{-4, 3}}, 1, {}, {}}}));
  EXPECT_EQ(result.module->entry()->root()->operands().size(), 1u);
}

TEST(OnnxIndexChecks, ViewsAndWiderIntegersAreLookedThrough) {
  const Message wide = node("Cast", {"ids"}, {"a"}, {attr("to", int64_t{kInt64})});
  const Message turned = node("Transpose", {"a"}, {"b"});
  const Message flat = node("Flatten", {"b"}, {"c"}, {attr("axis", int64_t{0})});
  const Checks checks = checks_of(model_of({wide, turned, flat, gather("c")}, kInt32));
  ASSERT_THAT(checks, SizeIs(1));
  EXPECT_EQ(checks[0].input, 1);
}

TEST(OnnxIndexChecks, WhatIsCutOffAnInputIsNotDemanded) {
  // A truncated integer, and part of an input: only the indices used must be in range.
  const Message narrow = node("Cast", {"ids"}, {"a"}, {attr("to", int64_t{kInt32})});
  const Checks narrowed = checks_of(model_of({narrow, gather("a")}));
  ASSERT_THAT(narrowed, SizeIs(1));
  EXPECT_EQ(narrowed[0].input, -1);
  Model part = model_of({node("Slice", {"ids", "one", "two"}, {"a"}), gather("a")});
  part.constants = {ints_tensor("one", {1}), ints_tensor("two", {2})};
  EXPECT_EQ(checks_of(part),
            (Checks{{"node 'emb/Gather' (Gather)", {{-4, 3}}, 1, {1, 0}, {-1, -1}}}));
  part.constants = {ints_tensor("one", {0}), ints_tensor("two", {1})};
  EXPECT_EQ(checks_of(part)[0].limits, (Ints{1, -1}));
}

TEST(OnnxIndexChecks, ComputedOnesAreAHiddenOutput) {
  const Imported result =
      imported(model_of({node("Add", {"ids", "zero"}, {"a"}), gather("a")}).import());
  EXPECT_EQ(result.index_checks, (Checks{{"node 'emb/Gather' (Gather)", {{-4, 3}}, -1, {}, {}}}));
  EXPECT_THAT(result.output_names, SizeIs(1));
  const Instr* root = result.module->entry()->root();
  ASSERT_THAT(root->operands(), SizeIs(2));
  EXPECT_EQ(to_string(root->operand(1)->shape()), "u64[]");
  EXPECT_THAT(root->operand(1)->nodes().list(), ::testing::Contains("emb/Gather"));
}

TEST(OnnxIndexChecks, PartsOfAnIndexVectorAreCheckedWhereTheyComeFrom) {
  // As exporters write x[ids[:, 0], zero]: columns side by side.
  Model model = model_of({node("Expand", {"zero", "form"}, {"b"}),
                          node("Concat", {"ids", "b"}, {"a"}, {attr("axis", int64_t{1})}),
                          node("GatherND", {"x4", "a"}, {"y"})});
  model.constants = {ints_tensor("form", {2, 1})};
  model.inputs.push_back(value("x4", kFloat, {"4", "3", "2"}));
  EXPECT_EQ(checks_of(model),
            (Checks{{"node #2 (GatherND, output 'y')", {{-4, 3}, {-3, 2}}, 1, {}, {}},
                    {"node #2 (GatherND, output 'y')", {{-2, 1}}, 2, {}, {}}}));
}

TEST(OnnxIndexChecks, OneOfSeveralEqualDemandsIsEnough) {
  const Message sum = node("Add", {"ids", "zero"}, {"a"});
  const Message again = node("Gather", {"x", "a"}, {"z"});
  EXPECT_THAT(checks_of(model_of({sum, gather("a"), again})), SizeIs(1));
  const Message input_again = node("Gather", {"x", "ids"}, {"z"});
  EXPECT_THAT(checks_of(model_of({gather("ids"), input_again})), SizeIs(1));
}

TEST(OnnxIndexChecks, EveryTableHasItsOwn) {
  Model model = model_of({gather("ids"), node("Gather", {"x2", "ids"}, {"z"}, {}, "", "small")});
  model.inputs.push_back(value("x2", kFloat, {"2", "3"}));
  EXPECT_EQ(checks_of(model), (Checks{{"node 'emb/Gather' (Gather)", {{-4, 3}}, 1, {}, {}},
                                      {"node 'small' (Gather)", {{-2, 1}}, 1, {}, {}}}));
}

TEST(OnnxIndexChecks, WhatIsAlwaysInRangeIsNotChecked) {
  const auto as_indices = [](const std::vector<Message>& nodes) {
    std::vector<Message> all = nodes;
    all.push_back(gather("a"));
    Model model = model_of(all);
    model.constants = {ints_tensor("k", {2}), ints_tensor("five", {5}),
                       tensor<int64_t>("low", kInt64, {}, {-4}),
                       tensor<int64_t>("high", kInt64, {}, {3})};
    return checks_of(model);
  };
  EXPECT_THAT(as_indices({node("TopK", {"x", "k"}, {"", "a"}, {attr("axis", int64_t{0})})}),
              IsEmpty());
  EXPECT_THAT(as_indices({node("Clip", {"ids", "low", "high"}, {"a"})}), IsEmpty());
  EXPECT_THAT(as_indices({node("Mod", {"ids", "k"}, {"a"})}), IsEmpty());
  EXPECT_THAT(as_indices({node("Mod", {"ids", "five"}, {"a"})}), SizeIs(1));
  EXPECT_THAT(as_indices({node("Cast", {"on"}, {"a"}, {attr("to", int64_t{kInt64})})}), IsEmpty());
}

TEST(OnnxIndexChecks, KnownOnesAreCheckedAtImport) {
  for (const int64_t index : {-4, 3, -5, 4}) {
    Model model = model_of({gather("c")});
    model.constants = {ints_tensor("c", {0, index})};
    const bool inside = index >= -4 && index <= 3;
    EXPECT_EQ(error_of(model.import()) == "", inside) << index;
    if (inside) continue;
    EXPECT_THAT(error_of(model.import()),
                HasSubstr("node 'emb/Gather' (Gather): index " + std::to_string(index) +
                          " is out of range; input 1 takes -4 to 3"));
  }
}

TEST(OnnxIndexChecks, LargeConstantsAreCheckedToo) {
  std::vector<int64_t> many(1 << 15, 1);
  Model model = model_of({gather("c")});
  model.constants = {ints_tensor("c", many)};
  EXPECT_EQ(error_of(model.import()), "");
  many.back() = 4;
  model.constants = {ints_tensor("c", many)};
  EXPECT_THAT(error_of(model.import()), HasSubstr("index 4 is out of range"));
}

TEST(OnnxIndexChecks, NothingIsTakenFromNothing) {
  Model model = model_of({node("Gather", {"none", "ids"}, {"y"})});
  model.constants = {tensor<float>("none", kFloat, {0, 3}, {})};
  EXPECT_THAT(error_of(model.import()), HasSubstr("nothing to take"));
}

TEST(OnnxIndexChecks, ABranchHandsItsDemandsOn) {
  const auto branch = [](const std::string& data, const std::string& name) {
    const Message taken = node("Gather", {data, "ids"}, {"r"}, {}, "", name);
    return Message().message(1, taken).text(2, name).message(12, Message().text(1, "r"));
  };
  Model model = model_of({node("If", {"on"}, {"y"},
                               {graph_attr("then_branch", branch("v", "inner")),
                                graph_attr("else_branch", branch("w", "other"))})});
  model.inputs.push_back(value("v", kFloat, {"7"}));
  model.inputs.push_back(value("w", kFloat, {"9"}));
  EXPECT_EQ(checks_of(model), (Checks{{"node 'inner' (Gather)", {{-7, 6}}, -1, {}, {}},
                                      {"node 'other' (Gather)", {{-9, 8}}, -1, {}, {}}}));
}

}  // namespace
}  // namespace heddle::import::testing
