// batch_groups_to_features: batch groups become feature groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "hlo/text.h"
#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Dim {
  int64_t input, size, stride = 1, pad_low = 0, pad_high = 0, lhs_dilate = 1, rhs_dilate = 1;
  bool reversed = false;
  int64_t output() const {
    const int64_t over = (input - 1) * lhs_dilate + 1 + pad_low + pad_high;
    const int64_t window = (size - 1) * rhs_dilate + 1;
    return over < window ? 0 : (over - window) / stride + 1;
  }
};

struct Case {
  int64_t groups, images, features, filters;  // images and filters per group
  std::vector<Dim> dims;
  std::string input = "01bf", kernel = "01io", output = "01bf";  // dimension orders
};

std::string extents(const std::string& labels, const std::string& names,
                    const std::vector<int64_t>& of) {
  std::string text;
  for (char label : labels) text += fmt::format("{},", of[names.find(label)]);
  return text.substr(0, text.size() - 1);
}

std::string text(const Case& c) {
  std::vector<int64_t> in{c.groups * c.images, c.features},
      filter{c.features, c.groups * c.filters}, out{c.images, c.groups * c.filters};
  std::string size, stride, pad, lhs, rhs, reversal;
  for (const Dim& d : c.dims) {
    in.push_back(d.input);
    filter.push_back(d.size);
    out.push_back(d.output());
    const char* x = size.empty() ? "" : "x";
    size += fmt::format("{}{}", x, d.size);
    stride += fmt::format("{}{}", x, d.stride);
    pad += fmt::format("{}{}_{}", x, d.pad_low, d.pad_high);
    lhs += fmt::format("{}{}", x, d.lhs_dilate);
    rhs += fmt::format("{}{}", x, d.rhs_dilate);
    reversal += fmt::format("{}{}", x, static_cast<int>(d.reversed));
  }
  const std::string window = fmt::format(
      "window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}, ", size,
      stride, pad, lhs, rhs, reversal);
  return fmt::format(
      "x = f32[{}] parameter(0) k = f32[{}] parameter(1)\n"
      "ROOT r = f32[{}] convolution(x, k), {}dim_labels={}_{}->{}, batch_group_count={}",
      extents(c.input, "bf012", in), extents(c.kernel, "io012", filter),
      extents(c.output, "bf012", out), c.dims.empty() ? "" : window, c.input, c.kernel, c.output,
      c.groups);
}

void expect_rewritten(const Case& c, uint64_t seed = 1) {
  auto module = parse(text(c));
  auto before = module->clone();
  run(*module, "batch_groups_to_features");
  EXPECT_THAT(hlo::to_string(*module), Not(HasSubstr("batch_group_count"))) << text(c);
  EXPECT_THAT(hlo::to_string(*module), Not(HasSubstr("transpose"))) << text(c);
  expect_same_values(*before, *module, seed, true, text(c));
}

TEST(BatchGroupsToFeatures, GradientsOfDepthwiseFilters) {
  const Dim plain{4, 4, 1, 1, 1};
  Dim strided{8, 4, 1, 1, 0};
  strided.rhs_dilate = 2;  // of a convolution with stride 2
  expect_rewritten({6, 1, 3, 1, {plain, plain}, "f01b", "i01o"});
  expect_rewritten({6, 1, 3, 1, {strided, strided}, "f01b", "i01o"});
  expect_rewritten({5, 1, 2, 3, {{7, 5, 1, 2, 0}, {9, 3, 2, 1, 1}}, "fb01", "io01", "bf01"});
}

TEST(BatchGroupsToFeatures, OneOfEachKindAndNoImage) {
  expect_rewritten({2, 1, 1, 1, {{3, 2}, {4, 3}}});
  expect_rewritten({3, 2, 4, 2, {}, "bf", "io", "fb"});
  expect_rewritten({4, 2, 3, 2, {{9, 3, 2, 1, 1}}, "b0f", "0io", "b0f"});
}

TEST(BatchGroupsToFeatures, AnyWindowInAnyOrder) {
  std::mt19937_64 random(7);
  auto any = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 120; ++i) {
    Case c{any(2, 4), any(1, 3), any(1, 4), any(1, 3), {}, "bf", "io", "bf"};
    const int64_t rank = any(1, 3);
    for (int64_t d = 0; d < rank; ++d) {
      c.dims.push_back({any(3, 7), any(1, 4), any(1, 3), any(-1, 2), any(-1, 2), any(1, 2),
                        any(1, 2), any(0, 1) == 1});
      for (std::string* labels : {&c.input, &c.kernel, &c.output})
        *labels += static_cast<char>('0' + d);
    }
    for (std::string* labels : {&c.input, &c.kernel, &c.output})
      std::shuffle(labels->begin(), labels->end(), random);
    if (std::all_of(c.dims.begin(), c.dims.end(), [](const Dim& d) { return d.output() > 0; }))
      expect_rewritten(c, static_cast<uint64_t>(i));
  }
}

TEST(BatchGroupsToFeatures, OthersStay) {
  expect_unchanged(
      "x = f32[4,9,8] parameter(0) k = f32[3,2,16] parameter(1)\n"
      "ROOT r = f32[4,7,16] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, "
      "feature_group_count=4",
      "batch_groups_to_features");
}

}  // namespace
}  // namespace heddle::opt
