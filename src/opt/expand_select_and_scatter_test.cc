// expand_select_and_scatter: the same bits as choosing and scattering window by window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using testing::HasSubstr;
using testing::Not;

// Integers, so that many elements of a window are equal.
std::string gradient(const std::string& extents, const std::string& windows,
                     const std::string& window, const std::string& type = "s32",
                     const std::string& direction = "GE", const std::string& combine = "add",
                     const std::string& start = "0") {
  return fmt::format(
      "choose {{ a = {0}[] parameter(0) b = {0}[] parameter(1)\n"
      "ROOT c = pred[] compare(a, b), direction={4} }}\n"
      "combine {{ a = {0}[] parameter(0) b = {0}[] parameter(1) ROOT c = {0}[] {5}(a, b) }}\n"
      "ENTRY e {{ x = {0}[{1}] parameter(0) s = {0}[{2}] parameter(1) z = {0}[] constant({6})\n"
      "ROOT r = {0}[{1}] select-and-scatter(x, s, z), window={{{3}}}, select=choose, "
      "scatter=combine }}",
      type, extents, windows, window, direction, combine, start);
}

void expect_expanded(const std::string& text) {
  EXPECT_THAT(simplified(text, "expand_select_and_scatter"), Not(HasSubstr("select-and-scatter")))
      << text;
}

TEST(ExpandSelectAndScatter, WindowsSideBySide) {
  expect_expanded(gradient("2,6,4,3", "2,3,2,3", "size=1x2x2x1 stride=1x2x2x1"));
  expect_expanded(gradient("7,5", "3,1", "size=2x3 stride=2x3"));  // elements are left over
  expect_expanded(gradient("12", "4", "size=3 stride=3", "f32", "GT"));
}

TEST(ExpandSelectAndScatter, WindowsOverEachOtherAndPadding) {
  expect_expanded(gradient("2,7,3", "2,4,3", "size=1x3x1 stride=1x2x1 pad=0_0x1_1x0_0"));
  expect_expanded(gradient("6,5", "6,5", "size=3x3 pad=1_1x1_1", "s32", "LE"));
  expect_expanded(gradient("9,8", "3,3", "size=2x3 stride=3x3 pad=0_0x1_0"));  // gaps
  expect_expanded(gradient("4", "4", "size=2 stride=3 pad=4_3"));  // only padding in some
  expect_expanded(gradient("8", "4", "size=2 stride=2", "s32", "GE", "add", "5"));
}

TEST(ExpandSelectAndScatter, LeavesOthers) {
  const auto stays = [](const std::string& text) {
    expect_unchanged(text, "expand_select_and_scatter");
  };
  stays(gradient("8", "4", "size=2 stride=2", "s32", "GE", "multiply", "1"));
  stays(gradient("14,14", "2,2", "size=7x7 stride=7x7"));  // too many offsets
}

}  // namespace
}  // namespace heddle::opt
