// Kernels of arg-max and arg-min, checked by the kernel interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::stitch {
namespace {

// Ties, NaNs, the first or the last of equals: over the lanes, the extreme and then its position.
TEST(ExtremesTest, PositionsOverLanes) {
  const char* kText = R"(HloModule m
pick {{
  x = {0}[] parameter(0)
  i = {1}[] parameter(1)
  y = {0}[] parameter(2)
  j = {1}[] parameter(3)
  wins = pred[] compare(x, y), direction={2}
  x_nan = pred[] compare(x, x), direction=NE
  y_nan = pred[] compare(y, y), direction=NE
  y_number = pred[] not(y_nan)
  nan_wins = pred[] and(x_nan, y_number)
  best = pred[] or(wins, nan_wins)
  equal = pred[] compare(x, y), direction=EQ
  nans = pred[] and(x_nan, y_nan)
  tie = pred[] or(equal, nans)
  before = pred[] compare(i, j), direction={3}
  first = pred[] and(tie, before)
  takes = pred[] or(best, first)
  v = {0}[] select(best, x, y)
  p = {1}[] select(takes, i, j)
  ROOT t = ({0}[], {1}[]) tuple(v, p)
}}
ENTRY e {{
  a = f32[9,{4}] parameter(0)
  four = f32[] constant(4)
  fours = f32[9,{4}] broadcast(four), dimensions={{}}
  b = f32[9,{4}] multiply(a, fours)
  c = f32[9,{4}] floor(b)
  d = f32[9,{4}] sqrt(c)
  given = {0}[9,{4}] convert({5})
  i = {1}[9,{4}] iota(), iota_dimension=1
  start = {0}[] constant({6})
  zero = {1}[] constant({7})
  ROOT r = ({0}[9], {1}[9]) reduce(given, i, start, zero), dimensions={{1}}, to_apply=pick
}})";
  struct Case {
    const char *value, *position, *wins, *before, *start, *given = "c", *zero = "0";
  };
  for (const Case& c :
       {Case{"f32", "s32", "LT", "LT", "inf"}, Case{"f32", "s64", "GT", "LT", "-inf", "d"},
        Case{"f32", "s32", "GT", "GT", "-inf"}, Case{"s32", "s32", "LT", "LT", "2147483647"},
        Case{"f64", "s32", "GT", "GT", "-inf", "d", "-1"}})
    for (const char* target : {"icelake", "avx2", "portable"})
      for (const int extent : {16, 70, 3}) {
        const std::string text = fmt::format(fmt::runtime(kText), c.value, c.position, c.wins,
                                             c.before, extent, c.given, c.start, c.zero);
        auto module = hlo::parse_module(text);
        ASSERT_TRUE(module) << module.error().message;
        const compiler::FusionCheck checked =
            compiler::check_fusion(**module, *target::find_target(target), 7, 512);
        EXPECT_EQ(checked.failure, "") << checked.text;
      }
}

}  // namespace
}  // namespace heddle::stitch
