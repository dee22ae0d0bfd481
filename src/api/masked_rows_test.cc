// Rows that a mask chooses are written back, as PyTorch's exporters have `f[m] = v`: the mask is
// expanded to all elements of its rows, whose positions are found then. The newer one also expands
// the rows to as many as the mask has, a sum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/late_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::ints_tensor;
using import::testing::kFloat;
using import::testing::node;
using import::testing::value;
using testing::Floats;
using testing::Ints;
using testing::Session;

// Of x as [batch * tokens, 4], the rows whose sum is above t are doubled; x is added to all.
import::testing::Model doubled_rows(bool expands) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"batch", "tokens", "4"}), value("t", kFloat, {})};
  model.constants = {ints_tensor("flat", {-1, 4}), ints_tensor("line", {-1}),
                     ints_tensor("zero", {0}), ints_tensor("one", {1}), ints_tensor("four", {4})};
  model.nodes = {node("Reshape", {"x", "flat"}, {"f"}),
                 node("ReduceSum", {"f", "one"}, {"sums"}, {attr("keepdims", int64_t{0})}),
                 node("Greater", {"sums", "t"}, {"m"}),
                 node("NonZero", {"m"}, {"found"}),
                 node("Transpose", {"found"}, {"rows"}),
                 node("GatherND", {"f", "rows"}, {"chosen"}),
                 node("Add", {"chosen", "chosen"}, {"doubled"}),
                 node("Unsqueeze", {"m", "one"}, {"column"}),
                 node("Shape", {"f"}, {"fs"}),
                 node("Expand", {"column", "fs"}, {"elements"}),
                 node("NonZero", {"elements"}, {"found_elements"}),
                 node("Transpose", {"found_elements"}, {"at"}),
                 node("Shape", {"at"}, {"as"})};
  const auto add = [&](const std::string& type, const import::testing::Strings& inputs,
                       const std::string& output,
                       const std::vector<import::testing::Message>& attributes = {}) {
    model.nodes.push_back(node(type, inputs, {output}, attributes));
  };
  if (expands) {
    add("Reshape", {"m", "line"}, "mask");
    add("Cast", {"mask"}, "ones", {attr("to", int64_t{import::testing::kInt64})});
    add("ReduceSum", {"ones", "zero"}, "many", {attr("keepdims", int64_t{1})});
    add("Concat", {"many", "four"}, "shape", {attr("axis", int64_t{0})});
    add("Expand", {"doubled", "shape"}, "expanded");
  }
  add("Reshape", {expands ? "expanded" : "doubled", "line"}, "values");
  add("Slice", {"as", "zero", "one"}, "count");
  add("Slice", {"values", "zero", "count", "zero"}, "all");
  add("ScatterND", {"f", "at", expands ? "values" : "all"}, "s");
  add("Shape", {"x"}, "xs");
  add("Reshape", {"s", "xs"}, "apart");
  add("Add", {"apart", "x"}, "y");
  model.outputs = {"y"};
  return model;
}

void expect_few_programs(bool expands) {
  const Ints first{1, 2, 4};
  const Floats example{-5, 2, 9, 5, 1, -3, 4, -8};
  float t = 0;
  Session session(
      doubled_rows(expands),
      {{"x", HEDDLE_F32, first.data(), 3, example.data()}, {"t", HEDDLE_F32, nullptr, 0, &t}},
      true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 40; ++k) {
    const int64_t batch = 2 + k % 3, tokens = 1 + k * 7 % 40;
    Floats x, wanted;
    for (int64_t i = 0; i < batch * tokens * 4; ++i)
      x.push_back(static_cast<float>((i * 7 + k) % 11) - 5);
    t = k == 5 ? 100 : 0;  // none is above it
    for (size_t row = 0; row < x.size(); row += 4) {
      const float sum = x[row] + x[row + 1] + x[row + 2] + x[row + 3];
      for (size_t i = row; i < row + 4; ++i) wanted.push_back(sum > t ? 3 * x[i] : 2 * x[i]);
    }
    session.set_shape(0, {batch, tokens, 4});
    EXPECT_THAT(session.run(x.data(), &t), ::testing::Pointwise(::testing::FloatEq(), wanted))
        << batch << " " << tokens;
    ASSERT_EQ(session.error(), "");
  }
  EXPECT_LE(session.compilations(), 6);
}

TEST(MaskedRows, AreAFewProgramsAtAllSizes) { expect_few_programs(false); }
TEST(MaskedRows, ExpandedToAsManyAsTheMaskHas) { expect_few_programs(true); }

}  // namespace
}  // namespace heddle::api
