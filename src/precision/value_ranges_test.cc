#include "precision/value_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heddle::precision {
namespace {

ValueRange seen(const std::vector<float>& values) {
  ValueRange range;
  range.add(values);
  return range;
}

TEST(ValueRanges, CountByPowerOfTwo) {
  const float inf = std::numeric_limits<float>::infinity();
  ValueRange range =
      seen({0, -0.0F, 1, -1.5F, 0x1p-149F, 0x1.8p-130F, 0x1p-126F, -3e38F, inf, NAN});
  EXPECT_EQ(range.elements, 10);
  EXPECT_EQ(range.not_finite, 2);
  EXPECT_EQ(range.nonzeros(), 6);
  EXPECT_EQ(range.most, 3e38F);
  const auto at = [&](int e) { return range.below(e + 1) - range.below(e); };
  for (const auto& [exponent, count] :
       std::map<int, int>{{0, 2}, {-149, 1}, {-130, 1}, {-126, 1}, {127, 1}, {5, 0}})
    EXPECT_EQ(at(exponent), count) << exponent;
  range.add(std::vector<float>{2});
  EXPECT_EQ(at(1), 1);
  EXPECT_EQ(range.elements, 11);
}

TEST(ValueRanges, TheLargestHasEightfoldRoom) {
  EXPECT_TRUE(fits_f16(seen({8188, 1})));
  EXPECT_FALSE(fits_f16(seen({8188.5F, 1})));
  EXPECT_FALSE(fits_f16(seen({-66246, 1})));
  EXPECT_FALSE(fits_f16(seen({1, NAN})));
  EXPECT_TRUE(overflows_f16(seen({1, NAN})));
  EXPECT_TRUE(fits_f16(seen({0, 0})));
  EXPECT_TRUE(fits_f16({}));
}

TEST(ValueRanges, OneInAThousandMayBeSmall) {
  std::vector<float> values(1000, 1);
  values[0] = 0x1p-15F;
  EXPECT_TRUE(fits_f16(seen(values)));
  values[1] = 0x1.fp-15F;
  EXPECT_FALSE(fits_f16(seen(values)));
  EXPECT_FALSE(overflows_f16(seen(values)));
  values[1] = 0x1p-14F;
  EXPECT_TRUE(fits_f16(seen(values)));
  // Zeros lose nothing, and hide nothing.
  for (size_t i = 2; i < values.size(); ++i) values[i] = 0;
  EXPECT_FALSE(fits_f16(seen(values)));
  values[0] = 0;
  EXPECT_TRUE(fits_f16(seen(values)));
}

TEST(ValueRanges, AreReadAsTheyWereWritten) {
  const ValueRanges ranges{{"a add f32[2]", seen({1, -0x1p-140F})},
                           {"b \"dot\" f32[3]", seen({0, NAN, 66246})},
                           {"c tanh f32[2]", seen({0, 0})}};
  const std::string text = to_text(ranges, "model", 3);
  const auto read = parse_ranges(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, ranges);
  EXPECT_EQ(to_text(*read, "model", 3), text);
}

TEST(ValueRanges, DamagedTextIsAnErrorOfOneLine) {
  const std::string text = to_text({{"a add f32[2]", seen({1, 4})}}, "model", 1);
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    const size_t at = copy.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    copy.replace(at, from.size(), to);
    const auto read = parse_ranges(copy);
    EXPECT_FALSE(read) << to;
    return read ? "" : read.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(damaged("\"most\":4.0", "\"most\":-4.0"), HasSubstr("most"));
  EXPECT_THAT(damaged("\"most\":4.0", "\"most\":9.0"), HasSubstr("contradict"));
  EXPECT_THAT(damaged("[2,1]", "[2,7]"), HasSubstr("exponents"));
  EXPECT_THAT(damaged("[2,1]", "[200,1]"), HasSubstr("exponents"));
  EXPECT_THAT(damaged("[2,1]", "7"), HasSubstr("exponents"));
  EXPECT_THAT(damaged("\"elements\":2", "\"elements\":-2"), HasSubstr("elements"));
  EXPECT_THAT(damaged("\"elements\":2", "\"elements\":1"), HasSubstr("exponents"));
  EXPECT_THAT(damaged("\"value\":", "\"walue\":"), HasSubstr("no name"));
  EXPECT_THAT(damaged("\"schema\":1", "\"schema\":2"), HasSubstr("schema 2, wanted 1"));
  EXPECT_THAT(damaged("ranges", "rangers"), HasSubstr("not a file of ranges"));
  for (size_t length : {size_t{0}, size_t{1}, text.size() / 2, text.size() - 3})
    EXPECT_FALSE(parse_ranges(std::string_view(text).substr(0, length))) << length;
  EXPECT_FALSE(parse_ranges("[]"));
  EXPECT_FALSE(parse_ranges("{\"kind\":\"ranges\",\"schema\":1,\"values\":[3]}"));
}

}  // namespace
}  // namespace heddle::precision
