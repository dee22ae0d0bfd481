// Images of many sizes: strides that need extents in steps, and positions of several levels in a
// single row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/late_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::kFloat;
using import::testing::node;
using import::testing::value;
using testing::Floats;
using testing::Ints;
using testing::Session;

const Floats kFilter{0.5F, -1, 0.25F, 1, -0.75F, 0.125F, -0.5F, 1, 0.5F};

// The sum of the positive values of a convolution with stride 2 and of a maximum over its windows.
// `listed`: they are found in one row of both levels first, as a detector lists its boxes.
import::testing::Model positive_of_levels(const std::string& h, const std::string& w, bool listed) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", h, w})};
  model.constants = {import::testing::tensor<float>("f", kFloat, {1, 1, 3, 3}, kFilter),
                     import::testing::ints_tensor("row", {-1})};
  model.nodes = {node("Conv", {"x", "f"}, {"a"},
                      {attr("strides", Ints{2, 2}), attr("pads", Ints{1, 1, 1, 1})}),
                 node("MaxPool", {"a"}, {"b"},
                      {attr("kernel_shape", Ints{3, 3}), attr("strides", Ints{2, 2}),
                       attr("pads", Ints{1, 1, 1, 1})}),
                 node("Relu", {"a"}, {"c"}), node("Relu", {"b"}, {"d"})};
  if (listed) {
    for (const auto& one :
         {node("Reshape", {"c", "row"}, {"first"}), node("Reshape", {"d", "row"}, {"second"}),
          node("Concat", {"first", "second"}, {"all"}, {attr("axis", int64_t{0})}),
          node("NonZero", {"all"}, {"at"}), node("Reshape", {"at", "row"}, {"places"}),
          node("Gather", {"all", "places"}, {"found"}),
          node("ReduceSum", {"found"}, {"y"}, {attr("keepdims", int64_t{0})})})
      model.nodes.push_back(one);
  } else {
    for (const auto& one : {node("ReduceSum", {"c"}, {"e"}, {attr("keepdims", int64_t{0})}),
                            node("ReduceSum", {"d"}, {"g"}, {attr("keepdims", int64_t{0})}),
                            node("Add", {"e", "g"}, {"y"})})
      model.nodes.push_back(one);
  }
  model.outputs = {"y"};
  return model;
}

struct Image {
  int64_t h = 0, w = 0;
  Floats values;
  float at(int64_t y, int64_t x, float outside) const {
    const bool inside = y >= 0 && y < h && x >= 0 && x < w;
    return inside ? values[static_cast<size_t>(y * w + x)] : outside;
  }
};

template <typename F>
Image windows_of(const Image& x, float outside, F combine) {
  Image result{x.h / 2, x.w / 2, {}};
  for (int64_t i = 0; i < result.h; ++i)
    for (int64_t j = 0; j < result.w; ++j) {
      Floats window;
      for (int64_t k = 0; k < 9; ++k)
        window.push_back(x.at(2 * i + k / 3 - 1, 2 * j + k % 3 - 1, outside));
      result.values.push_back(combine(window));
    }
  return result;
}

float expected(const Image& x) {
  const Image a = windows_of(x, 0, [](const Floats& window) {
    float sum = 0;
    for (size_t k = 0; k < 9; ++k) sum += window[k] * kFilter[k];
    return sum;
  });
  const Image b = windows_of(a, -std::numeric_limits<float>::infinity(), [](const Floats& window) {
    return *std::max_element(window.begin(), window.end());
  });
  float sum = 0;
  for (const Image* level : {&a, &b})
    for (const float v : level->values) sum += std::max(v, 0.0F);
  return sum;
}

Image image(int64_t h, int64_t w) {
  Image x{h, w, {}};
  for (int64_t i = 0; i < h * w; ++i) x.values.push_back(static_cast<float>((i * 37 + h) % 23) - 9);
  return x;
}

// Of a first run.
heddle_value first_image(const Image& x, const Ints& dims) {
  return {"x", HEDDLE_F32, dims.data(), std::ssize(dims), x.values.data()};
}

float run(Session* session, const Image& x) {
  session->set_shape(0, {1, 1, x.h, x.w});
  const Floats y = session->run(x.values.data(), nullptr);
  return y.size() == 1 ? y[0] : NAN;
}

void check_sizes(const std::string& h, const std::string& w, bool listed,
                 int64_t most_compilations) {
  const Image first = image(16, 24);
  const Ints dims{1, 1, first.h, first.w};
  Session session(positive_of_levels(h, w, listed), {first_image(first, dims)}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 16; ++k) {
    const Image x = image(4 + 4 * (k * 5 % 7), 8 + 4 * (k * 3 % 11));
    const float y = run(&session, x), wanted = expected(x);
    ASSERT_EQ(session.error(), "");
    EXPECT_NEAR(y, wanted, 1e-5F * wanted) << x.h << " by " << x.w;
  }
  EXPECT_LE(session.compilations(), most_compilations);
}

TEST(SizeSteps, StridesDivideMultiples) { check_sizes("4*h", "4*w", false, 6); }

TEST(SizeSteps, ExtentsAreCountedInSteps) { check_sizes("h", "w", false, 6); }

TEST(SizeSteps, PositionsOfLevels) { check_sizes("h", "w", true, 6); }

// Half of 42 is odd: the second stride does not divide it.
TEST(SizeSteps, WhatStepsDoNotDivideIsExact) {
  const Image first = image(32, 32);
  const Ints dims{1, 1, first.h, first.w};
  Session session(positive_of_levels("h", "w", false), {first_image(first, dims)}, true);
  for (const int64_t h : {32, 48, 64, 44}) {
    const Image x = image(h, 32);
    const float y = run(&session, x), wanted = expected(x);
    ASSERT_EQ(session.error(), "");
    EXPECT_NEAR(y, wanted, 1e-5F * wanted) << h;
  }
  run(&session, image(42, 32));
  ASSERT_EQ(session.error(), "");
}

}  // namespace
}  // namespace heddle::api
