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
  Image result{(x.h + 1) / 2, (x.w + 1) / 2, {}};
  for (int64_t i = 0; i < result.h; ++i)
    for (int64_t j = 0; j < result.w; ++j) {
      Floats window;
      for (int64_t k = 0; k < 9; ++k)
        window.push_back(x.at(2 * i + k / 3 - 1, 2 * j + k % 3 - 1, outside));
      result.values.push_back(combine(window));
    }
  return result;
}

float filtered(const Floats& window) {
  float sum = 0;
  for (size_t k = 0; k < 9; ++k) sum += window[k] * kFilter[k];
  return sum;
}

float expected(const Image& x) {
  const Image a = windows_of(x, 0, filtered);
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

// `step`: what divides all sizes.
void check_sizes(const std::string& h, const std::string& w, bool listed, int64_t step,
                 int64_t most_compilations) {
  const Image first = image(16, 24);
  const Ints dims{1, 1, first.h, first.w};
  Session session(positive_of_levels(h, w, listed), {first_image(first, dims)}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 16; ++k) {
    const Image x = image(4 + step * (k * 5 % 7), 8 + step * (k * 3 % 11));
    const float y = run(&session, x), wanted = expected(x);
    ASSERT_EQ(session.error(), "");
    EXPECT_NEAR(y, wanted, 1e-5F * wanted) << x.h << " by " << x.w;
  }
  EXPECT_LE(session.compilations(), most_compilations);
}

TEST(SizeSteps, StridesDivideMultiples) { check_sizes("4*h", "4*w", false, 4, 6); }

TEST(SizeSteps, ExtentsThatStepsDivide) { check_sizes("h", "w", false, 4, 6); }

TEST(SizeSteps, PositionsOfLevels) { check_sizes("h", "w", true, 4, 6); }

TEST(SizeSteps, ExtentsThatStepsDoNotDivide) {
  check_sizes("h", "w", false, 1, 6);
  check_sizes("h", "w", false, 3, 6);
}

TEST(SizeSteps, PositionsOfLevelsOfAnySize) { check_sizes("h", "w", true, 1, 6); }

// The mean over all places, of which there are a quotient by a quotient: eight filters, each a
// multiple of the first.
TEST(SizeSteps, MeansOfPicturesOfAnySize) {
  constexpr size_t kFilters = 8;
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", "h", "w"})};
  Floats filters;
  for (size_t k = 0; k < kFilters; ++k)
    for (const float v : kFilter) filters.push_back(v * static_cast<float>(k + 1));
  model.constants = {import::testing::tensor<float>("f", kFloat, {kFilters, 1, 3, 3}, filters)};
  model.nodes = {node("Conv", {"x", "f"}, {"a"},
                      {attr("strides", Ints{2, 2}), attr("pads", Ints{1, 1, 1, 1})}),
                 node("Relu", {"a"}, {"b"}), node("GlobalAveragePool", {"b"}, {"y"})};
  model.outputs = {"y"};
  const Image first = image(16, 24);
  const Ints dims{1, 1, first.h, first.w};
  Session session(model, {first_image(first, dims)}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 16; ++k) {
    const Image x = image(5 + 3 * (k * 5 % 7), 9 + 2 * (k * 3 % 11));
    session.set_shape(0, {1, 1, x.h, x.w});
    const Floats y = session.run(x.values.data(), nullptr);
    ASSERT_EQ(session.error(), "");
    ASSERT_EQ(y.size(), kFilters);
    float sum = 0;
    for (const float v : windows_of(x, 0, filtered).values) sum += std::max(v, 0.0F);
    const float mean = sum / static_cast<float>((x.h + 1) / 2 * ((x.w + 1) / 2));
    for (size_t i = 0; i < kFilters; ++i)
      EXPECT_NEAR(y[i], mean * static_cast<float>(i + 1), 1e-4F * y.back()) << x.h << " " << x.w;
  }
  EXPECT_LE(session.compilations(), 6);
}

// Windows without padding, as a network has them that reads a wave: each layer's result is as long
// as a quotient.
TEST(SizeSteps, WindowsOfAWave) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", "samples"})};
  const Floats first_filter{1, -2, 0.5F, 1, 3}, second_filter{-1, 0.5F, 2};
  model.constants = {import::testing::tensor<float>("f", kFloat, {1, 1, 5}, first_filter),
                     import::testing::tensor<float>("g", kFloat, {1, 1, 3}, second_filter)};
  model.nodes = {node("Conv", {"x", "f"}, {"a"}, {attr("strides", Ints{3})}),
                 node("Relu", {"a"}, {"b"}),
                 node("Conv", {"b", "g"}, {"c"}, {attr("strides", Ints{2})}),
                 node("Softmax", {"c"}, {"y"}, {attr("axis", int64_t{2})})};
  model.outputs = {"y"};
  const Floats first_wave(40, 1);
  const Ints dims{1, 1, 40};
  Session session(model, {{"x", HEDDLE_F32, dims.data(), 3, first_wave.data()}}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 20; ++k) {
    const int64_t n = 23 + k * 37 % 101;
    Floats x;
    for (int64_t i = 0; i < n; ++i) x.push_back(std::sin(static_cast<float>(i)));
    const auto through = [](const Floats& from, const Floats& filter, size_t step) {
      Floats result;
      for (size_t i = 0; i + filter.size() <= from.size(); i += step) {
        float sum = 0;
        for (size_t j = 0; j < filter.size(); ++j) sum += from[i + j] * filter[j];
        result.push_back(sum);
      }
      return result;
    };
    Floats wanted = through(x, first_filter, 3);
    for (float& v : wanted) v = std::max(v, 0.0F);
    wanted = through(wanted, second_filter, 2);
    float total = 0;
    for (float& v : wanted) total += v = std::exp(v);
    session.set_shape(0, {1, 1, n});
    const Floats y = session.run(x.data(), nullptr);
    ASSERT_EQ(session.error(), "");
    ASSERT_EQ(session.dims(), (Ints{1, 1, std::ssize(wanted)})) << n;
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(y[i], wanted[i] / total, 1e-5) << n << " " << i;
  }
  EXPECT_LE(session.compilations(), 6);
}

}  // namespace
}  // namespace heddle::api
