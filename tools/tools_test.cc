// What the commands are made of, without a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "api/tolerance.h"
#include "command_line.h"
#include "comparison.h"
#include "hlo/text.h"
#include "model_options.h"
#include "report.h"
#include "statistics.h"
#include "suggest.h"

namespace heddle::tools {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(statistics, OfKnownValues) {
  const Statistics s = statistics_of({5, 1, 4, 2, 3});
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 5);
  EXPECT_EQ(s.mean, 3);
  EXPECT_NEAR(s.p90, 4.6, 1e-12);
  EXPECT_NEAR(s.p95, 4.8, 1e-12);
  EXPECT_NEAR(s.p99, 4.96, 1e-12);
  EXPECT_NEAR(s.cv, std::sqrt(2.5) / 3, 1e-12);
  EXPECT_EQ(statistics_of({7}).p99, 7);
  EXPECT_EQ(statistics_of({7}).cv, 0);
  EXPECT_EQ(statistics_of({}).median, 0);
}

TEST(model_options, Dimensions) {
  EXPECT_EQ(parse_dim("batch=8")->size, 8);
  EXPECT_EQ(parse_dim("a=b=8")->name, "a=b");
  EXPECT_EQ(parse_dim("n=8<=64")->bound, 64);
  EXPECT_EQ(parse_dim("n=8<=64")->size, 8);
  EXPECT_EQ(parse_dim("n=<=64")->size, std::nullopt);
  for (const char* wrong : {"batch", "batch=", "=3", "batch=x", "batch=-1", "batch=1.5", "b=3 "})
    EXPECT_FALSE(parse_dim(wrong)) << wrong;
}

TEST(model_options, Shapes) {
  EXPECT_THAT(parse_shape_choice("x=1x3x224")->second, ElementsAre(1, 3, 224));
  EXPECT_THAT(parse_shape_choice("x=1,3")->second, ElementsAre(1, 3));
  EXPECT_TRUE(parse_shape_choice("x=")->second.empty());
  for (const char* wrong : {"x", "=2", "x=2x", "x=x2", "x=2xx3", "x=axb", "x=-1"})
    EXPECT_FALSE(parse_shape_choice(wrong)) << wrong;
}

TEST(command_line, ListsTakeOneValueEach) {
  CommandLine line("test", "a test");
  std::string model;
  std::vector<std::string> values;
  std::optional<int64_t> count;
  bool flag = false;
  line.argument(model, "MODEL", "a model");
  line.list(values, "--input", "NAME=SPEC", "a value");
  line.number(count, "--count", "N", "a number");
  line.flag(flag, "--flag", "a flag");
  ASSERT_TRUE(line.parse({"--input", "a=1", "m.onnx", "--input=b=2", "--count", "3", "--flag"}));
  EXPECT_EQ(model, "m.onnx");
  EXPECT_THAT(values, ElementsAre("a=1", "b=2"));
  EXPECT_EQ(count, 3);
  EXPECT_TRUE(flag);
  EXPECT_EQ(line.options().size(), 3u);
}

TEST(command_line, ErrorsAreOneLineAndNameTheHelp) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{}, {"m", "--what"}, {"m", "--count", "x"}, {"m", "n"}}) {
    CommandLine line("test", "a test");
    std::string model;
    std::optional<int64_t> count;
    line.argument(model, "MODEL", "a model");
    line.number(count, "--count", "N", "a number");
    const Result<bool> parsed = line.parse(wrong);
    ASSERT_FALSE(parsed);
    EXPECT_THAT(parsed.error().message, HasSubstr("heddle test --help"));
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST(command_line, Bytes) {
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("4KiB"), 4096);
  EXPECT_EQ(parse_bytes("4 kb"), 4000);
  EXPECT_EQ(parse_bytes("1.5GiB"), 3 * (int64_t{1} << 29));
  EXPECT_EQ(parse_bytes("2M"), 2000000);
  EXPECT_EQ(parse_bytes("1TiB"), int64_t{1} << 40);
  EXPECT_EQ(parse_bytes("7B"), 7);
  for (const char* wrong :
       {"", "-4", "x", "4X", "4GiX", "1.5", "GiB", "1e9", "99999999999TiB", "4ii"})
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
}

TEST(suggest, Nearest) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("levle", "level"), 1u);
  EXPECT_EQ(nearest("--threds", {"--json", "--threads", "--target"}), "--threads");
  EXPECT_EQ(nearest("RNU", {"run", "bench"}), "run");
  EXPECT_EQ(nearest("--batch", {"--json", "--threads", "--target"}), "");
  EXPECT_EQ(did_you_mean("x", {"run"}), "");
  EXPECT_EQ(did_you_mean("benhc", {"run", "bench"}), "; did you mean bench?");
}

Literal floats(const std::vector<float>& values) {
  return Literal::from<float>(Shape::array(Type::f32, {static_cast<int64_t>(values.size())}),
                              values);
}

TEST(report, ValuesInShort) {
  EXPECT_EQ(value_text(floats({1, 2})), "{1, 2}");
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> many(100, 1.0f);
  many[3] = std::numeric_limits<float>::quiet_NaN();
  many[4] = -infinity;
  many[5] = 3;
  EXPECT_THAT(value_text(floats(many)), HasSubstr("min 1, max 3"));
  EXPECT_THAT(value_text(floats(many)), HasSubstr("1 nan, 1 infinite"));
  const ValueSummary s = summarize(floats(many));
  EXPECT_EQ(s.finite, 98);
  EXPECT_NEAR(s.mean, 100.0 / 98, 1e-9);
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(ms_text(0.0123), "12.3 us");
}

TEST(comparison, NamesTheWorstElement) {
  const Literal got =
      Literal::from<float>(Shape::array(Type::f32, {2, 2}), std::vector<float>{1, 2, 3, 4});
  const Literal want =
      Literal::from<float>(Shape::array(Type::f32, {2, 2}), std::vector<float>{1, 2, 3.5, 4});
  const OutputCheck check = check_output("y", got, want, {});
  EXPECT_FALSE(check.equal());
  EXPECT_THAT(check.worst_at, ElementsAre(1, 0));
  EXPECT_NEAR(check.relative_error(), 0.5 / 4, 1e-7);
  EXPECT_THAT(to_string(check), HasSubstr("DIFFERS"));
  EXPECT_EQ(to_string(check_output("y", got, got, {})), "y f32[2,2]: equal");
}

// As of the boxes that a detector finds: a score next to its threshold decides.
TEST(comparison, AnotherNumberOfRowsDiffers) {
  const Literal got = Literal::from<float>(Shape::array(Type::f32, {2}), std::vector<float>{1, 2});
  const Literal want =
      Literal::from<float>(Shape::array(Type::f32, {3}), std::vector<float>{1, 2, 3});
  const OutputCheck check = check_output("y", got, want, {});
  EXPECT_FALSE(check.equal());
  EXPECT_EQ(to_string(check), "y f32[2]: wanted f32[3]: DIFFERS");
}

}  // namespace
}  // namespace heddle::tools
