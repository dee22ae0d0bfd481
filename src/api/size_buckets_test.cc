#include "api/size_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "api/late_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::kFloat;
using import::testing::node;
using import::testing::value;
using tensor::Shape;
using tensor::Type;
using testing::Floats;
using testing::Ints;
using testing::Session;

Port port(const std::vector<std::string>& names) {
  Port result;
  for (const std::string& name : names) result.named.push_back({name});
  return result;
}
std::vector<Shape> shapes(const Ints& dims) { return {Shape::array(Type::f32, dims)}; }

TEST(SizeBuckets, WhatNeverDiffersStaysANumber) {
  SizeBuckets buckets({port({"batch", "n", ""})}, {});
  EXPECT_FALSE(buckets.choose(shapes({1, 7, 3}))) << "the first run has an exact program";
  EXPECT_FALSE(buckets.choose(shapes({1, 7, 3})));
  const auto bucket = buckets.choose(shapes({1, 9, 3}));
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->text(), "[1,*,3] n=5..16");
  EXPECT_EQ(buckets.choose(shapes({1, 16, 3})), bucket);
  EXPECT_EQ(buckets.choose(shapes({1, 2, 3}))->text(), "[1,*,3] n=1..4");
  EXPECT_EQ(buckets.choose(shapes({2, 9, 3}))->text(), "[*,*,3] batch=1..4 n=5..16");
  EXPECT_EQ(buckets.choose(shapes({2, 9, 4}))->text(), "[*,*,4] batch=1..4 n=5..16");
}

TEST(SizeBuckets, AllMayDifferFromTheFirstRunOn) {
  SizeBuckets buckets({port({"batch", "n", "2*n", ""})}, {"batch"}, true);
  EXPECT_EQ(buckets.choose(shapes({3, 7, 14, 5}))->text(), "[3,*,*,5] n=5..16");
  EXPECT_EQ(buckets.choose(shapes({3, 20, 40, 5}))->text(), "[3,*,*,5] n=17..256");
  EXPECT_EQ(buckets.choose(shapes({3, 200, 400, 5}))->text(), "[3,*,*,5] n=17..256");
  SizeBuckets others({port({"n"})}, {}, true);
  const auto wide = others.choose(shapes({20}));
  others.stop(*wide);
  others.refuse(*wide);
  EXPECT_EQ(others.choose(shapes({20}))->text(), "[*] n=17..64") << "there is no wide one";
  others.stop(*others.choose(shapes({20})));
  EXPECT_FALSE(others.choose(shapes({5})));
  EXPECT_EQ(buckets.choose(shapes({3, 300, 600, 5}))->text(), "[3,*,*,5] n=1..1024");
}

TEST(SizeBuckets, BehindAFewOneTakesAll) {
  SizeBuckets buckets({port({"n"})}, {});
  for (const int64_t n : {1, 2, 5}) buckets.choose(shapes({n}));
  EXPECT_EQ(buckets.choose(shapes({100}))->text(), "[*] n=1..256");
  EXPECT_EQ(buckets.choose(shapes({3}))->text(), "[*] n=1..4") << "the ones before stay";
  EXPECT_EQ(buckets.choose(shapes({255}))->text(), "[*] n=1..256");
  EXPECT_EQ(buckets.choose(shapes({257}))->text(), "[*] n=1..1024");
}

TEST(SizeBuckets, WhatIsRefusedIsExact) {
  SizeBuckets buckets({port({"n", "n", "m"})}, {"m"});
  buckets.choose(shapes({2, 2, 1}));
  EXPECT_FALSE(buckets.choose(shapes({3, 4, 1}))) << "one name, two extents";
  EXPECT_FALSE(buckets.choose(shapes({0, 0, 1})));
  const auto bucket = buckets.choose(shapes({3, 3, 2}));
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->text(), "[*,*,2] n=1..4");
  buckets.refuse(*bucket);
  const auto open = buckets.choose(shapes({3, 3, 2}));
  ASSERT_TRUE(open);
  EXPECT_EQ(open->text(), "[*,*,2] n=1..4 computed extents open");
  buckets.refuse(*open);
  EXPECT_FALSE(buckets.choose(shapes({3, 3, 2})));
  // Half of a bucket may do.
  buckets.refuse(*buckets.choose(shapes({6, 6, 2})));
  EXPECT_EQ(buckets.choose(shapes({6, 6, 2}))->text(), "[*,*,2] n=5..8");
  buckets.refuse(*buckets.choose(shapes({9, 9, 2})));
  EXPECT_FALSE(buckets.choose(shapes({9, 9, 2})));
  for (const int64_t n : {64, 256, 1024, 4096}) buckets.refuse(*buckets.choose(shapes({n, n, 2})));
  EXPECT_FALSE(buckets.choose(shapes({20000, 20000, 2}))) << "there are no buckets any more";
  EXPECT_EQ(buckets.choose(shapes({7, 7, 2}))->text(), "[*,*,2] n=5..8") << "but for the one";
}

TEST(SizeBuckets, NamesThatAreMultiples) {
  EXPECT_EQ(multiple_of("n")->factor, 1);
  for (const char* name : {"2*n", "n*2", "2 * n"}) {
    ASSERT_TRUE(multiple_of(name)) << name;
    EXPECT_EQ(multiple_of(name)->name, "n");
    EXPECT_EQ(multiple_of(name)->factor, 2);
  }
  for (const char* name : {"past+1", "2*", "2*3", "0*n", "-2*n", "n*m", "", "2*n+1"})
    EXPECT_FALSE(multiple_of(name)) << name;
  SizeBuckets buckets({port({"32*_h", "32*_w"})}, {});
  EXPECT_FALSE(buckets.choose(shapes({64, 96})));
  EXPECT_EQ(buckets.choose(shapes({128, 96}))->text(), "[*,96] _h=1..4");
  EXPECT_EQ(buckets.choose(shapes({160, 128}))->text(), "[*,*] _h=5..16 _w=1..4");
  EXPECT_FALSE(buckets.choose(shapes({160, 100}))) << "it is none";
}

TEST(SizeBuckets, InStepsWhereOnesAreRefused) {
  SizeBuckets buckets({port({"h"})}, {});
  buckets.choose(shapes({64}));
  const auto ones = buckets.choose(shapes({96}));
  EXPECT_EQ(ones->text(), "[*] h=65..256");
  buckets.refuse(*ones);
  const auto narrow = buckets.choose(shapes({96}));
  EXPECT_EQ(narrow->text(), "[*] h=65..128") << "steps were not why, perhaps";
  buckets.refuse(*narrow);
  const auto steps = buckets.choose(shapes({96}));
  EXPECT_EQ(steps->text(), "[*] h=32*1..4");
  EXPECT_EQ(steps->step("h"), 32);
  EXPECT_EQ(buckets.choose(shapes({128})), steps);
  EXPECT_EQ(buckets.choose(shapes({320}))->text(), "[*] h=32*5..16");
  EXPECT_EQ(buckets.choose(shapes({80}))->text(), "[*] h=16*1..32") << "behind two, of all";
  EXPECT_EQ(buckets.choose(shapes({96})), steps);
}

// A table of positions may end before a bound that takes all: what has been run fits.
TEST(SizeBuckets, OneThatTakesAllStaysSo) {
  SizeBuckets buckets({port({"n", "m"})}, {});
  for (const int64_t n : {1, 2, 100}) buckets.choose(shapes({n, n}));
  const auto all = buckets.choose(shapes({5, 10}));
  EXPECT_EQ(all->text(), "[*,*] m=1..256 n=1..256");
  buckets.refuse(*all);
  EXPECT_EQ(buckets.choose(shapes({5, 10}))->text(), "[*,*] m=1..128 n=1..128");
  SizeBuckets tight({port({"n"})}, {});
  for (const int64_t n : {1, 2, 200}) tight.choose(shapes({n}));
  tight.refuse(*tight.choose(shapes({9})));
  EXPECT_EQ(tight.choose(shapes({9}))->text(), "[*] n=1..224");
}

TEST(SizeBuckets, NoneBehindAStop) {
  SizeBuckets buckets({port({"n"})}, {});
  for (const int64_t n : {1, 2}) buckets.choose(shapes({n}));
  buckets.stop({});
  EXPECT_FALSE(buckets.choose(shapes({9})));
  EXPECT_TRUE(buckets.choose(shapes({3})));
}

// exp(x) less the largest of its row, over [batch, n, 8].
import::testing::Model below_largest() {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"batch", "n", "8"})};
  model.nodes = {node("Exp", {"x"}, {"e"}),
                 node("ReduceMax", {"e"}, {"most"}, {attr("axes", Ints{2})}),
                 node("Sub", {"e", "most"}, {"y"})};
  model.outputs = {"y"};
  return model;
}

Floats below_largest_of(const Floats& x) {
  Floats y;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = x.begin() + static_cast<int64_t>(i / 8 * 8);
    y.push_back(std::exp(x[i]) - std::exp(*std::max_element(row, row + 8)));
  }
  return y;
}

TEST(SizeBuckets, FiftySizesAreAFewPrograms) {
  Session session(below_largest(), {}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 50; ++k) {
    const int64_t batch = 1 + k % 5, n = 1 + k * 37 % 90;
    Floats x(static_cast<size_t>(batch * n * 8));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i + k));
    session.set_shape(0, {batch, n, 8});
    const Floats y = session.run(x.data(), nullptr);
    ASSERT_EQ(session.error(), "");
    ASSERT_EQ(session.dims(), (Ints{batch, n, 8}));
    EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(1e-5f), below_largest_of(x)));
  }
  EXPECT_LE(session.compilations(), 6);
}

// Positions are compared with what is there, not with the bucket.
TEST(SizeBuckets, PositionsAlongADimensionThatDiffers) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"n"}), value("i", import::testing::kInt64, {"1"})};
  model.nodes = {node("Exp", {"x"}, {"e"}), node("Abs", {"i"}, {"j"}),
                 node("Gather", {"e", "j"}, {"y"})};
  model.outputs = {"y"};
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  const Floats x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (int64_t n = 5; n < 10; ++n) {
    session.set_shape(0, {n});
    const int64_t last = n - 1, behind = n;
    EXPECT_THAT(session.run(x.data(), &last), ::testing::ElementsAre(std::exp(x[last])));
    ASSERT_EQ(session.error(), "");
    if (n < 9) continue;
    session.run(x.data(), &behind);
    EXPECT_THAT(session.error(), ::testing::HasSubstr("takes -9 to 8"));
  }
  EXPECT_EQ(session.compilations(), 2);
}

// A bucket may end where a table of positions does: all of the table is a slice of it, too, along
// one dimension and along two.
TEST(SizeBuckets, TablesThatEndAtTheBound) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"n", "n"})};
  Floats all(16 * 16), positions(16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i % 7);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<float>(i * i);
  model.constants = {import::testing::ints_tensor("zero", {0}),
                     import::testing::ints_tensor("one", {1}),
                     import::testing::tensor<float>("table", kFloat, {16, 16}, all),
                     import::testing::tensor<float>("positions", kFloat, {16}, positions)};
  model.nodes = {node("Shape", {"x"}, {"extents"}),
                 node("Slice", {"extents", "zero", "one"}, {"n"}),
                 node("Slice", {"table", "zero", "n", "zero"}, {"rows"}),
                 node("Slice", {"rows", "zero", "n", "one"}, {"weights"}),
                 node("Slice", {"positions", "zero", "n", "zero"}, {"at"}),
                 node("Add", {"x", "weights"}, {"weighted"}),
                 node("Add", {"weighted", "at"}, {"y"})};
  model.outputs = {"y"};
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 24; ++k) {
    const int64_t n = 1 + k * 5 % 16;
    Floats x(static_cast<size_t>(n * n)), wanted;
    for (int64_t i = 0; i < n * n; ++i) {
      x[static_cast<size_t>(i)] = static_cast<float>(i % 5);
      const int64_t row = i / n, column = i % n;
      wanted.push_back(static_cast<float>(i % 5 + (row * 16 + column) % 7 + column * column));
    }
    session.set_shape(0, {n, n});
    EXPECT_THAT(session.run(x.data(), nullptr), ::testing::Pointwise(::testing::FloatEq(), wanted));
    ASSERT_EQ(session.error(), "");
  }
  EXPECT_LE(session.compilations(), 4);
}

// What bounds cannot be put into has an exact program for each of its shapes.
TEST(SizeBuckets, ThoseThatCannotBeAreExact) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"n"})};
  model.nodes = {node("TopK", {"x", "k"}, {"y", "at"})};
  model.constants = {import::testing::ints_tensor("k", {2})};
  model.outputs = {"y"};
  const Floats first{1, 2};
  const Ints two{2};
  Session session(model, {{"x", HEDDLE_F32, two.data(), 1, first.data()}}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t n = 2; n < 9; ++n) {
    Floats x;
    for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(i));
    session.set_shape(0, {n});
    EXPECT_THAT(session.run(x.data(), nullptr), ::testing::ElementsAre(x[n - 1], x[n - 2]));
    ASSERT_EQ(session.error(), "");
  }
}

}  // namespace
}  // namespace heddle::api
