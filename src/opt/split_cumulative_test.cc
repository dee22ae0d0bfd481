// split_cumulative: windows over all earlier or later elements are split into blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;

std::string windowed(const std::string& type, const std::string& extents, const std::string& window,
                     const std::string& combiner = "add", const std::string& start = "0") {
  return fmt::format(
      "HloModule m\n"
      "f {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT r = {0}[] {3}(a, b) }}\n"
      "ENTRY e {{\nx = {0}[{1}] parameter(0) z = {0}[] constant({4})\n"
      "ROOT w = {0}[{1}] reduce-window(x, z), window={{{2}}}, to_apply=f\n}}",
      type, extents, window, combiner, start);
}

// The longest remaining window; checks that the values are the same.
int64_t longest_after(const std::string& text) {
  auto module = parse(text);
  auto before = module->clone();
  const pass::RunReport report = run(*module, "split_cumulative,dce");
  expect_same_values(*before, *module, 7, true, text);
  EXPECT_FALSE(run(*module, "split_cumulative").changed);
  int64_t longest = 0;
  for (const Instr* instr : module->entry()->instrs())
    if (instr->is(hlo::Opcode::reduce_window))
      for (const hlo::WindowDim& dim : instr->attrs_as<hlo::WindowAttrs>().window.dims)
        longest = std::max(longest, dim.size);
  return longest;
}

TEST(SplitCumulative, ByBlocksAndTheirTotals) {
  EXPECT_EQ(longest_after(windowed("f32", "3,512", "size=1x512 pad=0_0x511_0")), 32);
  EXPECT_EQ(longest_after(windowed("f32", "3,1024", "size=1x1024 pad=0_0x1023_0")), 16);
}

TEST(SplitCumulative, AnyExtentDirectionAndDimension) {
  EXPECT_EQ(longest_after(windowed("f32", "2,131", "size=1x131 pad=0_0x130_0")), 16);
  EXPECT_EQ(longest_after(windowed("s32", "2,131", "size=1x131 pad=0_0x0_130")), 16);
  EXPECT_EQ(longest_after(windowed("f32", "67,5,3", "size=67x1x1 pad=0_66x0_0x0_0")), 16);
  EXPECT_EQ(
      longest_after(windowed("f32", "4,50,3", "size=1x50x1 pad=0_0x49_0x0_0", "maximum", "-inf")),
      16);
}

TEST(SplitCumulative, LeavesOtherWindows) {
  const auto stays = [](const std::string& text) {
    auto module = parse(text);
    return !run(*module, "split_cumulative").changed;
  };
  EXPECT_TRUE(stays(windowed("f32", "3,40", "size=1x40 pad=0_0x39_0")));       // short
  EXPECT_TRUE(stays(windowed("f32", "3,512", "size=1x511 pad=0_0x510_0")));    // moving
  EXPECT_TRUE(stays(windowed("f32", "3,511", "size=1x511 pad=0_0x255_255")));  // both sides
  EXPECT_TRUE(stays(windowed("f32", "64,64", "size=64x64 pad=63_0x63_0")));    // two dimensions
  EXPECT_TRUE(stays(windowed("f32", "3,512", "size=1x512 pad=0_0x511_0", "add", "1")));
  EXPECT_TRUE(stays(windowed("f32", "3,512", "size=1x512 pad=0_0x511_0", "subtract")));
}

}  // namespace
}  // namespace heddle::opt
