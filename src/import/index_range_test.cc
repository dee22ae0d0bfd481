#include "import/index_range.h"

#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::import {
namespace {

// The range of the entry's root; "" if unknown.
std::string range_of(const std::string& body) {
  const auto module = hlo::parse_module("HloModule m\nENTRY e {\n" + body + "\n}\n");
  if (!module) return module.error().message;
  const auto range = index_range((*module)->entry()->root());
  return range ? fmt::format("{}..{}", range->low, range->high) : "";
}

const std::string kConstants = "a = s64[3] constant({-4, 2, 9})\nb = s64[3] constant({3, 1, -5})\n";

TEST(IndexRange, OfEveryElementOfAConstant) {
  EXPECT_EQ(range_of("ROOT a = s64[3] constant({5, 7, 99})"), "5..99");
  EXPECT_EQ(range_of("ROOT a = s64[3] constant({5, 7, -1})"), "-1..7");
  EXPECT_EQ(range_of("ROOT a = s64[1] constant({4})"), "4..4");
  EXPECT_EQ(range_of("ROOT a = s64[2,5] iota(), iota_dimension=1"), "0..4");
}

// All four ends: the largest product may be that of the two lowest ends.
TEST(IndexRange, OfArithmeticHasTheEndsOfItsOperands) {
  EXPECT_EQ(range_of(kConstants + "ROOT r = s64[3] add(a, b)"), "-9..12");
  EXPECT_EQ(range_of(kConstants + "ROOT r = s64[3] subtract(a, b)"), "-7..14");
  EXPECT_EQ(range_of(kConstants + "ROOT r = s64[3] multiply(a, b)"), "-45..27");
  EXPECT_EQ(range_of(kConstants + "ROOT r = s64[3] minimum(a, b)"), "-5..3");
  EXPECT_EQ(range_of(kConstants + "ROOT r = s64[3] maximum(a, b)"), "-4..9");
  EXPECT_EQ(range_of("a = s64[1] constant({9223372036854775807})\nROOT r = s64[1] add(a, a)"), "");
}

TEST(IndexRange, OfWhatATypeHolds) {
  EXPECT_EQ(range_of("ROOT x = s32[4] parameter(0)"), "-2147483648..2147483647");
  EXPECT_EQ(range_of("ROOT x = u8[4] parameter(0)"), "0..255");
  EXPECT_EQ(range_of("ROOT x = s64[4] parameter(0)"), "");
  EXPECT_EQ(range_of("x = u8[4] parameter(0)\nROOT y = s64[4] convert(x)"), "0..255");
}

// Of the part that a slice takes, through a transpose; what a scatter writes, and what was there.
TEST(IndexRange, OfPartsAndOfScatters) {
  const std::string rows =
      "a = s64[1,3] constant({{1, 2, 3}})\nb = s64[1,3] constant({{-7, 8, 9}})\n"
      "c = s64[2,3] concatenate(a, b), dimensions={0}\nt = s64[3,2] transpose(c), "
      "dimensions={1,0}\n";
  EXPECT_EQ(range_of(rows + "ROOT r = s64[3,1] slice(t), slice={[0:3], [0:1]}"), "1..3");
  EXPECT_EQ(range_of(rows + "ROOT r = s64[3,1] slice(t), slice={[0:3], [1:2]}"), "-7..9");
  EXPECT_EQ(range_of(rows + "ROOT r = s64[2,2] slice(c), slice={[0:2], [0:2]}"), "-7..9");
}

TEST(IndexRange, OfARemainderAndOfABound) {
  const std::string x = "x = s64[3] parameter(0)\nn = s64[3] constant({10, 10, 10})\n";
  EXPECT_EQ(range_of(x + "ROOT r = s64[3] remainder(x, n)"), "-9..9");
  EXPECT_EQ(range_of(x + "z = s64[3] constant({0, 0, 2})\nROOT r = s64[3] clamp(z, x, n)"),
            "0..10");
  EXPECT_EQ(range_of(x + "ROOT r = s64[6] concatenate(n, x), dimensions={0}"), "");
}

}  // namespace
}  // namespace heddle::import
