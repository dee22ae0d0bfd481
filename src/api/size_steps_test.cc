// Images of many sizes: strides that need extents in steps, and positions of several levels in one row.
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

// The positive values of a convolution in steps of 2 and of a maximum over its windows, as a detector
// lists what it finds at its levels.
import::testing::Model positive_of_levels(const std::string& h, const std::string& w) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", h, w})};
  model.constants = {import::testing::tensor<float>("f", kFloat, {1, 1, 3, 3}, kFilter),
                     import::testing::ints_tensor("row", {-1})};
  model.nodes = {
      node("Conv", {"x", "f"}, {"a"}, {attr("strides", Ints{2, 2}), attr("pads", Ints{1, 1, 1, 1})}),
      node("MaxPool", {"a"}, {"b"},
           {attr("kernel_shape", Ints{3, 3}), attr("strides", Ints{2, 2}),
            attr("pads", Ints{1, 1, 1, 1})}),
      node("Reshape", {"a", "row"}, {"first"}),
      node("Reshape", {"b", "row"}, {"second"}),
      node("Concat", {"first", "second"}, {"all"}, {attr("axis", int64_t{0})}),
      node("Relu", {"all"}, {"positive"}),
      node("NonZero", {"positive"}, {"at"}),
      node("Reshape", {"at", "row"}, {"places"}),
      node("Gather", {"all", "places"}, {"y"})};
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

Floats expected(const Image& x) {
  const Image a = windows_of(x, 0, [](const Floats& window) {
    float sum = 0;
    for (size_t k = 0; k < 9; ++k) sum += window[k] * kFilter[k];
    return sum;
  });
  const Image b = windows_of(a, -std::numeric_limits<float>::infinity(), [](const Floats& window) {
    return *std::max_element(window.begin(), window.end());
  });
  Floats result;
  for (const Image* level : {&a, &b})
    std::copy_if(level->values.begin(), level->values.end(), std::back_inserter(result),
                 [](float v) { return v > 0; });
  return result;
}

Image image(int64_t h, int64_t w) {
  Image x{h, w, {}};
  for (int64_t i = 0; i < h * w; ++i) x.values.push_back(static_cast<float>((i * 37 + h) % 23) - 9);
  return x;
}

void check_sizes(Session* session, int64_t most_compilations) {
  ASSERT_EQ(session->error(), "");
  for (int64_t k = 0; k < 16; ++k) {
    const Image x = image(4 + 4 * (k * 5 % 7), 8 + 4 * (k * 3 % 11));
    session->set_shape(0, {1, 1, x.h, x.w});
    const Floats y = session->run(x.values.data(), nullptr);
    ASSERT_EQ(session->error(), "");
    EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(1e-4F), expected(x)))
        << x.h << " by " << x.w;
  }
  EXPECT_LE(session->compilations(), most_compilations);
}

TEST(SizeSteps, StridesDivideMultiples) {
  Session session(positive_of_levels("4*h", "4*w"), {}, true);
  check_sizes(&session, 4);
}

TEST(SizeSteps, ExtentsAreCountedInSteps) {
  Session session(positive_of_levels("h", "w"), {}, true);
  check_sizes(&session, 5);
}

// 31 in steps of 2 are 16, as 32 are.
TEST(SizeSteps, WhatStepsDoNotDivideIsExact) {
  Session session(positive_of_levels("h", "w"), {}, true);
  for (const int64_t h : {32, 48, 64}) {
    const Image x = image(h, 32);
    session.set_shape(0, {1, 1, h, 32});
    session.run(x.values.data(), nullptr);
    ASSERT_EQ(session.error(), "");
  }
  const Image x = image(42, 32);
  session.set_shape(0, {1, 1, 42, 32});
  EXPECT_GT(session.run(x.values.data(), nullptr).size(), 0u);
  ASSERT_EQ(session.error(), "");
}

}  // namespace
}  // namespace heddle::api
