// split_input_dilation: transposed convolutions become plain ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text.h"
#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Dim {
  int64_t input, size, dilation, pad_low, pad_high, window_dilation = 1;
  bool reversed = false;
  int64_t output() const {
    return (input - 1) * dilation + 1 + pad_low + pad_high - window_dilation * (size - 1);
  }
};

// Two spatial dimensions, features last.
std::string text(const Dim& a, const Dim& b) {
  return fmt::format(
      "x = f32[2,{},{},3] parameter(0) k = f32[{},{},3,4] parameter(1)\n"
      "ROOT r = f32[2,{},{},4] convolution(x, k), window={{size={}x{} pad={}_{}x{}_{} "
      "lhs_dilate={}x{} rhs_dilate={}x{} rhs_reversal={}x{}}}, dim_labels=b01f_01io->b01f",
      a.input, b.input, a.size, b.size, a.output(), b.output(), a.size, b.size, a.pad_low,
      a.pad_high, b.pad_low, b.pad_high, a.dilation, b.dilation, a.window_dilation,
      b.window_dilation, static_cast<int>(a.reversed), static_cast<int>(b.reversed));
}

void expect_split(const Dim& a, const Dim& b) {
  if (a.output() < 1 || b.output() < 1) return;
  auto module = parse(text(a, b));
  auto before = module->clone();
  run(*module, "split_input_dilation");
  EXPECT_THAT(hlo::to_string(*module), Not(HasSubstr("lhs_dilate"))) << text(a, b);
  expect_same_values(*before, *module, 5, true, text(a, b));
}

TEST(SplitInputDilation, EveryWindowAndPadding) {
  const Dim plain{5, 3, 1, 1, 1};
  for (int64_t dilation : {2, 3})
    for (int64_t size : {1, 2, 3, 4, 5})
      for (int64_t low : {-1, 0, 1, 2, 4})
        for (int64_t high : {-1, 0, 2})
          expect_split({4, size, dilation, low, high, 1, size == 3}, plain);
}

TEST(SplitInputDilation, BothDimensionsAndDilatedWindows) {
  expect_split({4, 4, 2, 2, 2}, {5, 3, 2, 1, 2});
  expect_split({4, 2, 2, 1, 1}, {5, 5, 3, 2, 2, 1, true});
  expect_split({4, 3, 2, 3, 3, 3}, {5, 3, 1, 1, 1, 2});
  expect_split({1, 3, 2, 2, 2}, {3, 2, 4, 1, 1});
}

TEST(SplitInputDilation, PhasesOfOneElementBecomeProducts) {
  auto module = parse(text({4, 2, 2, 1, 1}, {5, 2, 2, 1, 1}));
  run(*module, "split_input_dilation,convolution_to_dot");
  EXPECT_THAT(hlo::to_string(*module), Not(HasSubstr("convolution(")));
}

TEST(SplitInputDilation, OthersStay) {
  expect_unchanged(text({5, 3, 1, 1, 1}, {5, 3, 1, 1, 1, 2}), "split_input_dilation");
  // Window dilations that share a divisor with the input's.
  expect_unchanged(text({5, 3, 2, 2, 2, 2}, {5, 3, 1, 1, 1}), "split_input_dilation");
  expect_unchanged(text({5, 3, 16, 2, 2}, {5, 3, 1, 1, 1}), "split_input_dilation");
  expect_unchanged(
      "x = f32[1,5,3] parameter(0) k = f32[3,3,4] parameter(1)\n"
      "ROOT r = f32[1,6,4] convolution(x, k), window={size=3 stride=2 pad=2_2 lhs_dilate=2}, "
      "dim_labels=b0f_0io->b0f",
      "split_input_dilation");
}

}  // namespace
}  // namespace heddle::opt
