// Counts over dimensions that a reshape merges, both of which differ from run to run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "api/late_test_util.h"
#include "import/onnx_test_util.h"

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

// Of exp(x) as [batch * tokens, 2] the elements above t: `rows` are the numbers of their rows, by
// columns; y is x, to which exp(x) was added at each of these rows.
import::testing::Model chosen_rows(const std::string& output) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"batch", "tokens", "2"}), value("t", kFloat, {})};
  model.constants = {ints_tensor("flat", {-1, 2}),
                     import::testing::tensor<int64_t>("one", import::testing::kInt64, {}, {1}),
                     ints_tensor("last", {1})};
  model.nodes = {node("Reshape", {"x", "flat"}, {"f"}),
                 node("Exp", {"f"}, {"e"}),
                 node("Greater", {"e", "t"}, {"c"}),
                 node("Transpose", {"c"}, {"ct"}, {attr("perm", Ints{1, 0})}),
                 node("NonZero", {"ct"}, {"at"}),
                 node("Gather", {"at", "one"}, {"r"}, {attr("axis", int64_t{0})}),
                 node("Cast", {"r"}, {"rows"}, {attr("to", int64_t{kFloat})}),
                 node("Gather", {"e", "r"}, {"p"}, {attr("axis", int64_t{0})}),
                 node("Unsqueeze", {"r", "last"}, {"i"}),
                 node("Shape", {"f"}, {"fs"}),
                 node("ConstantOfShape", {"fs"}, {"z"}),
                 node("ScatterND", {"z", "i", "p"}, {"s"}, {attr("reduction", std::string("add"))}),
                 node("Shape", {"x"}, {"xs"}),
                 node("Reshape", {"s", "xs"}, {"sx"}),
                 node("Add", {"x", "sx"}, {"y"})};
  model.outputs = {output};
  return model;
}

Floats values_of(int64_t batch, int64_t tokens) {
  Floats x;
  for (int64_t i = 0; i < batch * tokens * 2; ++i)
    x.push_back(static_cast<float>((i * 7 + batch * 3 + tokens) % 11) / 4 - 1);
  return x;
}

Floats expected(const std::string& output, const Floats& x, float t) {
  const auto is_chosen = [&](size_t i) { return std::exp(x[i]) > t; };
  Floats rows, y = x;
  for (size_t column = 0; column < 2; ++column)
    for (size_t i = column; i < x.size(); i += 2)
      if (is_chosen(i)) rows.push_back(static_cast<float>(i / 2));
  for (const float row : rows)
    for (size_t i : {static_cast<size_t>(row) * 2, static_cast<size_t>(row) * 2 + 1})
      y[i] += std::exp(x[i]);
  return output == "y" ? y : rows;
}

class MergedCounts : public ::testing::TestWithParam<std::string> {};

TEST_P(MergedCounts, StayOpenAtAllSizesOfABucket) {
  const Ints first{2, 3, 2};
  Floats x = values_of(2, 3);
  float t = 1.5f;
  Session session(chosen_rows(GetParam()),
                  {{"x", HEDDLE_F32, first.data(), 3, x.data()}, {"t", HEDDLE_F32, nullptr, 0, &t}},
                  true);
  ASSERT_EQ(session.error(), "");
  // At the bounds, of one element, in between; none, some and all that there are.
  for (const auto& [batch, tokens] : std::vector<std::pair<int64_t, int64_t>>{
           {2, 3}, {3, 4}, {4, 4}, {1, 4}, {4, 1}, {1, 1}, {2, 3}, {3, 2}})
    for (const float least : {1.5f, 100.f, 0.f}) {
      x = values_of(batch, tokens);
      session.set_shape(0, {batch, tokens, 2});
      const Floats y = session.run(x.data(), &least), wanted = expected(GetParam(), x, least);
      ASSERT_EQ(session.error(), "");
      ASSERT_EQ(y.size(), wanted.size()) << batch << " " << tokens << " " << least;
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y[i], wanted[i], 1e-5) << batch << " " << tokens << " " << least << " " << i;
    }
  if (GetParam() == "y") {
    EXPECT_LE(session.compilations(), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Late, MergedCounts, ::testing::Values("y", "rows"));

}  // namespace
}  // namespace heddle::api
