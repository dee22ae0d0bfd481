// Images of many sizes that a model resizes to one: the positions follow from extents that a run
// tells, and so does what it makes of the sizes themselves, boxes in the image as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "api/late_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::ints_tensor;
using import::testing::kFloat;
using import::testing::kInt64;
using import::testing::node;
using import::testing::Strings;
using import::testing::value;
using testing::Floats;
using testing::Ints;
using testing::Session;

constexpr int64_t kRows = 6, kColumns = 5;

// The image in 6 by 5, plus its height over 6.
import::testing::Model resized(const std::string& mode, const std::string& positions) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", "height", "width"})};
  model.constants = {ints_tensor("zero", {0}), ints_tensor("two", {2}), ints_tensor("third", {2}),
                     ints_tensor("wanted", {kRows, kColumns}),
                     import::testing::tensor<float>("six", kFloat, {1}, {6})};
  std::vector<import::testing::Message> attributes{
      attr("mode", mode), attr("coordinate_transformation_mode", positions),
      attr("keep_aspect_ratio_policy", std::string("stretch"))};
  if (mode == "nearest") attributes.push_back(attr("nearest_mode", std::string("floor")));
  model.nodes = {node("Shape", {"x"}, {"all"}),
                 node("Slice", {"all", "zero", "two"}, {"outer"}),
                 node("Concat", {"outer", "wanted"}, {"sizes"}, {attr("axis", int64_t{0})}),
                 node("Resize", {"x", "", "", "sizes"}, {"small"}, attributes),
                 node("Gather", {"all", "third"}, {"height_of_x"}),
                 node("Cast", {"height_of_x"}, {"height_as_float"}, {attr("to", int64_t{kFloat})}),
                 node("Div", {"height_as_float", "six"}, {"factor"}),
                 node("Add", {"small", "factor"}, {"y"})};
  model.outputs = {"y"};
  return model;
}

struct Axis {
  int64_t in, out;
  // The place of an element among those of the image.
  double at(int64_t o, const std::string& positions) const {
    const auto x = static_cast<double>(o), n = static_cast<double>(in),
               m = static_cast<double>(out);
    if (positions == "align_corners") return x * (n - 1) / (m - 1);
    if (positions == "asymmetric") return x / (m / n);
    return (x + 0.5) / (m / n) - 0.5;
  }
  int64_t inside(double place) const {
    return std::clamp<int64_t>(static_cast<int64_t>(place), 0, in - 1);
  }
};

void expect_right(const std::string& mode, const std::string& positions) {
  Session session(resized(mode, positions), {}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 20; ++k) {
    const int64_t h = 5 + k * 7 % 23, w = 4 + k * 5 % 29;
    Floats x(static_cast<size_t>(h * w));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    session.set_shape(0, {1, 1, h, w});
    const Floats y = session.run(x.data(), nullptr);
    ASSERT_EQ(session.error(), "");
    const Axis rows{h, kRows}, columns{w, kColumns};
    const auto pixel = [&](double r, double c) {
      return static_cast<double>(x[static_cast<size_t>(rows.inside(r) * w + columns.inside(c))]);
    };
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) {
        const double a = rows.at(r, positions), b = columns.at(c, positions);
        const double fa = a - std::floor(a), fb = b - std::floor(b);
        double wanted = pixel(std::floor(a), std::floor(b));
        if (mode == "linear")
          wanted = (1 - fa) * ((1 - fb) * pixel(std::floor(a), std::floor(b)) +
                               fb * pixel(std::floor(a), std::floor(b) + 1)) +
                   fa * ((1 - fb) * pixel(std::floor(a) + 1, std::floor(b)) +
                         fb * pixel(std::floor(a) + 1, std::floor(b) + 1));
        EXPECT_NEAR(y[static_cast<size_t>(r * kColumns + c)],
                    wanted + static_cast<double>(h) / kRows, 1e-5)
            << h << " " << w << " " << r << " " << c;
      }
  }
  EXPECT_LE(session.compilations(), 6) << mode << " " << positions;
}

TEST(ResizedSizes, Linear) {
  expect_right("linear", "half_pixel");
  expect_right("linear", "align_corners");
}

TEST(ResizedSizes, Nearest) {
  expect_right("nearest", "asymmetric");
  expect_right("nearest", "half_pixel");
}

// As detectors do: the shorter side becomes 8 unless the longer one would be more than 14, then
// zeros follow up to multiples of 4.
import::testing::Model scaled_and_padded() {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", "height", "width"})};
  model.constants = {ints_tensor("zero", {0}),
                     ints_tensor("two", {2}),
                     ints_tensor("four", {4}),
                     ints_tensor("outer", {1, 1}),
                     ints_tensor("zeros", {0, 0, 0, 0, 0, 0}),
                     import::testing::tensor<float>("least", kFloat, {}, {8}),
                     import::testing::tensor<float>("most", kFloat, {}, {14}),
                     import::testing::tensor<float>("step", kFloat, {}, {4}),
                     import::testing::tensor<float>("f", kFloat, {1, 1, 1, 2}, {1, 1})};
  const auto to = [](int64_t type) { return std::vector{attr("to", type)}; };
  model.nodes = {
      node("Shape", {"x"}, {"all"}),
      node("Slice", {"all", "two", "four"}, {"size"}),
      node("ReduceMin", {"size"}, {"shorter"}, {attr("keepdims", int64_t{0})}),
      node("ReduceMax", {"size"}, {"longer"}, {attr("keepdims", int64_t{0})}),
      node("Cast", {"shorter"}, {"shorter_as_float"}, to(kFloat)),
      node("Cast", {"longer"}, {"longer_as_float"}, to(kFloat)),
      node("Div", {"least", "shorter_as_float"}, {"p"}),
      node("Div", {"most", "longer_as_float"}, {"q"}),
      node("Min", {"p", "q"}, {"factor"}),
      node("Cast", {"size"}, {"size_as_float"}, to(kFloat)),
      node("Mul", {"size_as_float", "factor"}, {"scaled"}),
      node("Floor", {"scaled"}, {"floor"}),
      node("Cast", {"floor"}, {"wanted"}, to(kInt64)),
      node("Concat", {"outer", "wanted"}, {"sizes"}, {attr("axis", int64_t{0})}),
      node("Resize", {"x", "", "", "sizes"}, {"small"},
           {attr("mode", std::string("nearest")), attr("nearest_mode", std::string("floor")),
            attr("coordinate_transformation_mode", std::string("asymmetric"))}),
      node("Shape", {"small"}, {"all_small"}),
      node("Slice", {"all_small", "two", "four"}, {"small_size"}),
      node("Cast", {"small_size"}, {"small_as_float"}, to(kFloat)),
      node("Div", {"small_as_float", "step"}, {"steps"}),
      node("Ceil", {"steps"}, {"whole"}),
      node("Mul", {"whole", "step"}, {"padded_as_float"}),
      node("Cast", {"padded_as_float"}, {"padded_size"}, to(kInt64)),
      node("Sub", {"padded_size", "small_size"}, {"more"}),
      node("Concat", {"zeros", "more"}, {"pads"}, {attr("axis", int64_t{0})}),
      node("Pad", {"small", "pads"}, {"padded"})};
  return model;
}

// Every other pixel is added to the one beside it.
TEST(ResizedSizes, ByAFactorAndPadded) {
  import::testing::Model model = scaled_and_padded();
  model.nodes.push_back(node("Conv", {"padded", "f"}, {"y"}, {attr("strides", Ints{1, 2})}));
  model.outputs = {"y"};
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 30; ++k) {
    const int64_t h = 5 + k * 7 % 23, w = 4 + k * 5 % 29;
    Floats x(static_cast<size_t>(h * w));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    session.set_shape(0, {1, 1, h, w});
    const Floats y = session.run(x.data(), nullptr);
    ASSERT_EQ(session.error(), "");
    const float factor = std::min(8.0F / static_cast<float>(std::min(h, w)),
                                  14.0F / static_cast<float>(std::max(h, w)));
    const auto small = [&](int64_t n) {
      return static_cast<int64_t>(std::floor(static_cast<float>(n) * factor));
    };
    const int64_t rows = small(h), columns = small(w);
    const auto up = [](int64_t n) { return (n + 3) / 4 * 4; };
    ASSERT_EQ(session.dims(), (Ints{1, 1, up(rows), up(columns) / 2})) << h << " by " << w;
    const auto pixel = [&](int64_t r, int64_t c) {
      if (r >= rows || c >= columns) return 0.0F;
      const Axis down{h, rows}, across{w, columns};
      return x[static_cast<size_t>(down.inside(down.at(r, "asymmetric")) * w +
                                   across.inside(across.at(c, "asymmetric")))];
    };
    for (int64_t r = 0; r < up(rows); ++r)
      for (int64_t c = 0; c < up(columns) / 2; ++c)
        EXPECT_NEAR(y[static_cast<size_t>(r * (up(columns) / 2) + c)],
                    pixel(r, 2 * c) + pixel(r, 2 * c + 1), 1e-5)
            << h << " by " << w << " at " << r << " " << c;
  }
  EXPECT_LE(session.compilations(), 6);
}

void add(import::testing::Model* model, const std::string& type, const Strings& inputs,
         const Strings& outputs, const std::vector<import::testing::Message>& attributes = {}) {
  model->nodes.push_back(node(type, inputs, outputs, attributes));
}

std::vector<import::testing::Message> axis(int64_t of) { return {attr("axis", of)}; }

// Two levels of a pyramid, and of each the extents and the number of pixels.
import::testing::Model two_levels() {
  import::testing::Model model = scaled_and_padded();
  for (const import::testing::Message& constant :
       {ints_tensor("h", {2}), ints_tensor("w", {3}), ints_tensor("one", {1})})
    model.constants.push_back(constant);
  add(&model, "MaxPool", {"padded"}, {"halved"},
      {attr("kernel_shape", Ints{2, 2}), attr("strides", Ints{2, 2})});
  for (const std::string level : {"padded", "halved"}) {
    add(&model, "Shape", {level}, {level + "_shape"});
    for (const std::string side : {"h", "w"})
      add(&model, "Gather", {level + "_shape", side}, {level + "_" + side});
    add(&model, "Mul", {level + "_h", level + "_w"}, {level + "_n"});
  }
  add(&model, "Add", {"padded_n", "halved_n"}, {"all_n"});
  return model;
}

// Of 20 sizes the results of exact programs, up to `apart`, from 6 programs at most.
void expect_as_exact(const import::testing::Model& model, float apart,
                     const std::function<void(const Floats& wanted)>& look_at) {
  Session session(model, {}, true);
  ASSERT_EQ(session.error(), "");
  for (int64_t k = 0; k < 20; ++k) {
    const int64_t h = 5 + k * 7 % 23, w = 4 + k * 5 % 29;
    Floats x(static_cast<size_t>(h * w));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i + i));
    Session exact(model, {}, true);
    for (Session* one : {&session, &exact}) one->set_shape(0, {1, 1, h, w});
    const Floats y = session.run(x.data(), nullptr), wanted = exact.run(x.data(), nullptr);
    ASSERT_EQ(session.error(), "");
    ASSERT_EQ(exact.error(), "");
    EXPECT_THAT(y, ::testing::Pointwise(::testing::FloatNear(apart), wanted)) << h << " by " << w;
    look_at(wanted);
  }
  EXPECT_LE(session.compilations(), 6);
}

// A half that is rounded up, resized to the size of the whole and added, twice.
import::testing::Model pyramid(const std::string& mode) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", "height", "width"})};
  model.constants = {ints_tensor("two", {2}), ints_tensor("four", {4}), ints_tensor("zero", {0})};
  add(&model, "Neg", {"x"}, {"level0"});
  for (const std::string k : {"0", "1"})
    add(&model, "MaxPool", {"level" + k}, {k == "0" ? "level1" : "level2"},
        {attr("kernel_shape", Ints{2, 2}), attr("strides", Ints{2, 2}),
         attr("ceil_mode", int64_t{1})});
  for (const std::string k : {"1", "0"}) {
    add(&model, "Shape", {"level" + k}, {"size" + k});
    add(&model, "Resize", {k == "1" ? "level2" : "sum1", "", "", "size" + k}, {"up" + k},
        {attr("mode", mode), attr("nearest_mode", std::string("floor")),
         attr("coordinate_transformation_mode",
              std::string(mode == "nearest" ? "asymmetric" : "half_pixel"))});
    add(&model, "Add", {"up" + k, "level" + k}, {k == "0" ? "y" : "sum1"});
  }
  model.outputs = {"y"};
  return model;
}

TEST(ResizedSizes, ToTheSizeOfAnotherLevel) {
  expect_as_exact(pyramid("nearest"), 0, [](const Floats&) {});
  expect_as_exact(pyramid("linear"), 1e-6F, [](const Floats&) {});
}

// The pixels of an image and of its half as one row: a result whose extent is a sum of products.
TEST(ResizedSizes, ARowOfAllPixels) {
  import::testing::Model model;
  model.inputs = {value("x", kFloat, {"1", "1", "height", "width"})};
  model.constants = {ints_tensor("row", {1, -1})};
  add(&model, "MaxPool", {"x"}, {"half"},
      {attr("kernel_shape", Ints{2, 2}), attr("strides", Ints{2, 2}),
       attr("ceil_mode", int64_t{1})});
  for (const std::string level : {"x", "half"})
    add(&model, "Reshape", {level, "row"}, {"row_of_" + level});
  add(&model, "Concat", {"row_of_x", "row_of_half"}, {"joined"}, axis(1));
  add(&model, "Neg", {"joined"}, {"y"});
  model.outputs = {"y"};
  expect_as_exact(model, 0, [](const Floats&) {});
}

// As detectors go on: the five largest of each of two levels, whose pixels are one row, with the
// number of the level times 100, and the means of two regions.
import::testing::Model levels() {
  import::testing::Model model = two_levels();
  const import::testing::Message row = ints_tensor("row", {1, -1});
  for (const import::testing::Message& constant :
       {row, ints_tensor("five", {5}), ints_tensor("first", {0, 0}),
        import::testing::tensor<float>("hundred", kFloat, {1}, {100}),
        import::testing::tensor<float>("regions", kFloat, {2, 4}, {0, 1, 5, 4, 2.5, -1, 20, 30})})
    model.constants.push_back(constant);
  for (const std::string level : {"padded", "halved"}) {
    add(&model, "Reshape", {level, "row"}, {level + "_row"});
    add(&model, "ConstantOfShape", {level + "_n"}, {level + "_number"},
        {import::testing::tensor_attr("value", ints_tensor("", {level == "halved" ? 1 : 0}))});
  }
  add(&model, "Concat", {"padded_row", "halved_row"}, {"row_of_all"}, axis(1));
  add(&model, "Concat", {"padded_number", "halved_number"}, {"numbers"}, axis(0));
  for (const std::string level : {"padded", "halved"}) {
    const bool is_first = level == "padded";
    add(&model, "Slice",
        {"row_of_all", is_first ? "zero" : "padded_n", is_first ? "padded_n" : "all_n", "one"},
        {level + "_again"});
    add(&model, "Shape", {level + "_again"}, {level + "_again_shape"});
    add(&model, "Gather", {level + "_again_shape", "one"}, {level + "_there"});
    add(&model, "Concat", {"five", level + "_there"}, {level + "_both"}, axis(0));
    add(&model, "ReduceMin", {level + "_both"}, {level + "_k"});
    add(&model, "TopK", {level + "_again", level + "_k"}, {level + "_top", level + "_at"}, axis(1));
  }
  add(&model, "Add", {"halved_at", "padded_n"}, {"halved_in_all"});
  add(&model, "Concat", {"padded_top", "halved_top"}, {"top"}, axis(1));
  add(&model, "Concat", {"padded_at", "halved_in_all"}, {"at"}, axis(1));
  add(&model, "Gather", {"numbers", "at"}, {"number"}, axis(0));
  add(&model, "Cast", {"number"}, {"number_as_float"}, {attr("to", int64_t{kFloat})});
  add(&model, "Mul", {"number_as_float", "hundred"}, {"hundreds"});
  add(&model, "Add", {"top", "hundreds"}, {"marked"});
  add(&model, "RoiAlign", {"padded", "regions", "first"}, {"means"},
      {attr("output_height", int64_t{2}), attr("output_width", int64_t{3}),
       attr("sampling_ratio", int64_t{2})});
  add(&model, "Reshape", {"means", "row"}, {"means_row"});
  add(&model, "Concat", {"marked", "means_row"}, {"y"}, axis(1));
  model.outputs = {"y"};
  return model;
}

TEST(ResizedSizes, LevelsInOneRow) {
  expect_as_exact(levels(), 1e-5F, [](const Floats& wanted) {
    ASSERT_GE(wanted.size(), 2 * 2 * 3 + 5 + 4);
    EXPECT_GT(wanted[5], 99.0F) << "the second level";
  });
}

// As RetinaNet goes on: of each pixel above a threshold its place in a grid, which meets no other
// array, in the row of two levels cut apart again.
TEST(ResizedSizes, PlacesInAGridThatIsOnlyLookedUp) {
  import::testing::Model model = two_levels();
  const import::testing::Message row = ints_tensor("row", {-1});
  for (const import::testing::Message& constant :
       {row, ints_tensor("hundred", {100}),
        import::testing::tensor<int64_t>("start", kInt64, {}, {0}),
        import::testing::tensor<int64_t>("delta", kInt64, {}, {1}),
        import::testing::tensor<float>("half", kFloat, {}, {0.5})})
    model.constants.push_back(constant);
  for (const std::string level : {"padded", "halved"}) {
    for (const std::string side : {"h", "w"}) {
      add(&model, "Squeeze", {level + "_" + side, "zero"}, {level + "_all_" + side});
      add(&model, "Range", {"start", level + "_all_" + side, "delta"}, {level + "_line_" + side});
    }
    add(&model, "Mul", {level + "_line_h", "hundred"}, {level + "_hundreds"});
    add(&model, "Unsqueeze", {level + "_hundreds", "one"}, {level + "_column"});
    add(&model, "Add", {level + "_column", level + "_line_w"}, {level + "_grid"});
    add(&model, "Reshape", {level + "_grid", "row"}, {level + "_places"});
    add(&model, "Reshape", {level, "row"}, {level + "_row"});
  }
  add(&model, "Concat", {"padded_places", "halved_places"}, {"places"}, axis(0));
  add(&model, "Concat", {"padded_row", "halved_row"}, {"row_of_all"}, axis(0));
  for (const std::string level : {"padded", "halved"}) {
    const bool is_first = level == "padded";
    for (const std::string of : {"places", "row_of_all"})
      add(&model, "Slice",
          {of, is_first ? "zero" : "padded_n", is_first ? "padded_n" : "all_n", "zero"},
          {level + "_part_of_" + of});
    add(&model, "Greater", {level + "_part_of_row_of_all", "half"}, {level + "_above"});
    add(&model, "NonZero", {level + "_above"}, {level + "_found"});
    add(&model, "Squeeze", {level + "_found", "zero"}, {level + "_at"});
    add(&model, "Gather", {level + "_part_of_places", level + "_at"}, {level + "_picked"});
  }
  add(&model, "Concat", {"padded_picked", "halved_picked"}, {"picked"}, axis(0));
  add(&model, "Cast", {"picked"}, {"y"}, {attr("to", int64_t{kFloat})});
  model.outputs = {"y"};
  expect_as_exact(model, 0, [](const Floats& wanted) { EXPECT_GT(wanted.size(), 5); });
}

}  // namespace
}  // namespace heddle::api
