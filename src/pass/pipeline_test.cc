#include "pass/pipeline.h"

#include <gtest/gtest.h>

namespace heddle::pass {
namespace {

std::string printed(std::string_view text) {
  Result<Pipeline> pipeline = parse_pipeline(text);
  return pipeline ? to_string(*pipeline) : "error: " + pipeline.error().message;
}

TEST(Pipeline, TextRoundTrips) {
  for (const char* text : {"", "a", "a,b", "{a}*", "a,{b,c}*,d", "{a,{b,c}*3}*,{d}*1000"}) {
    EXPECT_EQ(printed(text), text);
    Result<Pipeline> once = parse_pipeline(text), twice = parse_pipeline(printed(text));
    ASSERT_TRUE(once && twice);
    EXPECT_EQ(*once, *twice);
  }
}

TEST(Pipeline, SpacesAndTheDefaultCountAreNormalised) {
  EXPECT_EQ(printed("  a , { b , c } * , d "), "a,{b,c}*,d");
  EXPECT_EQ(printed("{a}*16"), "{a}*");
  EXPECT_EQ(printed(" "), "");
}

TEST(Pipeline, ErrorsSayWhere) {
  EXPECT_EQ(printed("a,,b"),
            "error: pipeline, column 3: got `,b`, wanted the name of a pass or `{`");
  EXPECT_EQ(printed("{a,b}"), "error: pipeline, column 6: got ``, wanted `*` behind a group");
  EXPECT_EQ(printed("{a"), "error: pipeline, column 3: got ``, wanted `,` or `}`");
  EXPECT_EQ(printed("a}"), "error: pipeline, column 2: got `}`, wanted `,` or the end");
  EXPECT_EQ(printed("{a}*0"), "error: pipeline, column 6: got ``, wanted 1 to 1000 rounds");
  EXPECT_EQ(printed("{a}*99999999999999999999,b").substr(0, 26), "error: pipeline, column 9:");
  EXPECT_EQ(printed(std::string(1'000'000, '{')).substr(0, 26), "error: pipeline, column 10");
}

}  // namespace
}  // namespace heddle::pass
