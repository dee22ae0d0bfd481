#include "api/size_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/late_test_util.h"
#include "api/size_buckets.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::node;
using import::testing::value;
using tensor::Shape;
using tensor::Type;
using testing::Floats;
using testing::Ints;
using testing::Session;

using Sums = std::map<std::string, SumOfExtents>;

TEST(SizeSums, AreThoseOfAllRuns) {
  std::vector<Extents> runs = {{{"earlier", 5}, {"tokens", 3}, {"total", 8}}};
  const std::set<std::string> all = {"earlier", "tokens", "total"};
  EXPECT_TRUE(sums_among(runs, all).empty()) << "one run says nothing";
  runs.push_back({{"earlier", 20}, {"tokens", 1}, {"total", 21}});
  EXPECT_EQ(sums_among(runs, all), (Sums{{"total", {{"earlier", "tokens"}, 0}}}));
  EXPECT_TRUE(sums_among(runs, {"earlier", "tokens"}).empty());
  runs.push_back({{"earlier", 20}, {"tokens", 2}, {"total", 21}});
  EXPECT_TRUE(sums_among(runs, all).empty()) << "not of the last one";
}

TEST(SizeSums, OfOneAndANumber) {
  const std::vector<Extents> runs = {{{"a", 5}, {"b", 5}, {"c", 7}},
                                     {{"a", 9}, {"b", 9}, {"c", 11}}};
  EXPECT_EQ(sums_among(runs, {"a", "b", "c"}), (Sums{{"b", {{"a"}, 0}}, {"c", {{"a"}, 2}}}));
}

Port port(const std::string& name) {
  Port result;
  result.named.push_back({name});
  return result;
}

// Only where there is no program without them; and no more, once a run is another.
TEST(SizeSums, OfBuckets) {
  SizeBuckets buckets({port("n"), port("m")}, {});
  const auto choose = [&](int64_t n, int64_t m) {
    return buckets.choose({Shape::array(Type::f32, {n}), Shape::array(Type::f32, {m})});
  };
  EXPECT_FALSE(choose(2, 3));
  const auto apart = choose(6, 7);
  EXPECT_EQ(apart->text(), "[*][*] m=5..16 n=5..16");
  buckets.refuse(*apart);
  const auto together = choose(6, 7);
  EXPECT_EQ(together->text(), "[*][*] m=n+1 n=5..16");
  EXPECT_EQ(together->bounds, (Extents{{"m", 17}, {"n", 16}}));
  EXPECT_EQ(together->least, (Extents{{"m", 6}, {"n", 5}}));
  EXPECT_EQ(choose(16, 17), together);
  EXPECT_NE(choose(6, 8), together);
}

// As a decoder has it: a mask of its own over what was kept and what is new.
TEST(SizeSums, AMaskOverWhatIsJoinedIsAFewPrograms) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"n"}), value("mask", kInt64, {"total"})};
  model.constants = {import::testing::tensor<float>("new", kFloat, {2}, {7, 8})};
  model.nodes = {node("Abs", {"x"}, {"kept"}),
                 node("Concat", {"kept", "new"}, {"all"}, {attr("axis", int64_t{0})}),
                 node("Cast", {"mask"}, {"weight"}, {attr("to", int64_t{kFloat})}),
                 node("Mul", {"all", "weight"}, {"y"})};
  model.outputs = {"y"};
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  const Floats x(60, -3);
  Ints mask(62);
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<int64_t>(i % 2);
  for (int64_t k = 0; k < 40; ++k) {
    const int64_t n = 2 + k * 7 % 55;
    Floats wanted(static_cast<size_t>(n + 2), 3);
    wanted[static_cast<size_t>(n)] = 7, wanted[static_cast<size_t>(n) + 1] = 8;
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] *= static_cast<float>(mask[i]);
    session.set_shape(0, {n});
    session.set_shape(1, {n + 2});
    EXPECT_THAT(session.run(x.data(), mask.data()),
                ::testing::Pointwise(::testing::FloatEq(), wanted));
    ASSERT_EQ(session.error(), "");
  }
  EXPECT_LE(session.compilations(), 6);
}

}  // namespace
}  // namespace heddle::api
