// Which loops stop at the extent, and what is refused. That results are right is proved on programs
// (tests/bounded_programs_test.cc).
#include "lower/trim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/text.h"
#include "kernel/verify.h"
#include "lower/passes.h"

namespace heddle::lower {
namespace {

using kernel::BufferId;
using kernel::Kernel;
using ::testing::HasSubstr;
using ::testing::Not;

Kernel parsed(const std::string& text) {
  auto kernel = kernel::parse_kernel(text);
  HEDDLE_CHECK(kernel, "{}", kernel.error().message);
  return std::move(*kernel);
}

// in0 is f32[64,8] with 64 rows at most, in1 the extent, out0 of the form `out`.
Kernel rows(const std::string& out, const std::string& body) {
  return parsed(
      "heddle.kernel 1\nkernel k {\n  buffer in0: f32[512] global in\n"
      "  buffer in1: s32[1] global in\n  buffer out0: " +
      out + " global out\n  buffer acc: f32[1] reg\n  phase {\n    group {\n" + body +
      "    }\n  }\n}\n");
}

TrimRequest request(bool reduced, bool out_follows) {
  TrimRequest result;
  result.groups = {{BufferId(size_t{1}), 64, reduced}};
  result.globals = {{{8, 0}}, {}, {}};
  if (out_follows) result.globals[2] = {{8, 0}};
  result.reach = {1, 1, 1};
  return result;
}

std::string trimmed(Kernel kernel, const TrimRequest& request, std::vector<int64_t>* reads) {
  Trim wanted{request};
  Context context;
  context.trim = &wanted;
  const std::string before = to_string(kernel);
  const Result<bool> changed = trim(kernel, context);
  *reads = wanted.reads;
  if (!wanted.done) return wanted.done.code();
  EXPECT_TRUE(kernel::verify(kernel));
  EXPECT_EQ(*changed, to_string(kernel) != before);
  return to_string(kernel);
}

TEST(Trim, RowsStopAtTheExtent) {
  std::vector<int64_t> reads;
  const std::string text =
      trimmed(rows("f32[512]",
                   "serial tile 16 { serial i 4 { serial c 8 {\n"
                   "out0[tile*32 + i*8 + c] = in0[tile*32 + i*8 + c]\n} } }\n"),
              request(false, true), &reads);
  EXPECT_THAT(text, HasSubstr("let limit = max(min(convert(in1[0], s64), 64), 0)"));
  EXPECT_THAT(text, HasSubstr("let trips = max(min(floor_div(limit + 3, 4), 16), 0)"));
  EXPECT_THAT(text, HasSubstr("serial tile trips {"));
  EXPECT_THAT(text, HasSubstr("serial c 8 {"));
  EXPECT_EQ(reads, (std::vector<int64_t>{1, 1, 1}));
}

// Four rows at a time: what is read reaches to the end of the four.
TEST(Trim, ReductionsStopWhereTheirStepsEnd) {
  std::vector<int64_t> reads;
  const std::string text =
      trimmed(rows("f32[8]",
                   "serial c 8 {\nacc[0] = 0:f32\nserial b 16 { unrolled u 4 {\n"
                   "acc[0] = acc[0] + in0[b*32 + u*8 + c]\n} }\nout0[c] = acc[0]\n}\n"),
              request(true, false), &reads);
  EXPECT_THAT(text, HasSubstr("floor_div(convert(in1[0], s64) + 3, 4)*4"));
  EXPECT_THAT(text, Not(HasSubstr("serial b 16")));
  EXPECT_EQ(reads[0], 4);
}

// Four vectors a step: the last step may be fewer of them.
TEST(Trim, TheLastStepOfASumIsOfItsParts) {
  std::vector<int64_t> reads;
  Kernel kernel = parsed(
      "heddle.kernel 1\nkernel k {\n  buffer in0: f32[256] global in\n"
      "  buffer in1: s32[1] global in\n  buffer out0: f32[64] global out\n"
      "  buffer acc: f32[4] reg lanes 16\n  phase {\n    group {\n"
      "unrolled z 4 { vector l 16 lanes 16 { acc[z] = 0:f32 } }\n"
      "serial b 4 { unrolled u 4 { vector l_1 16 lanes 16 {\n"
      "acc[u] = acc[u] + in0[b*64 + u*16 + l_1]\n} } }\n"
      "unrolled y 4 { vector l_2 16 lanes 16 { out0[y*16 + l_2] = acc[y] } }\n"
      "    }\n  }\n}\n");
  TrimRequest wanted;
  wanted.groups = {{BufferId(size_t{1}), 256, true}};
  wanted.globals = {{{1, 0}}, {}, {}};
  wanted.reach = {1, 1, 1};
  const std::string text = trimmed(std::move(kernel), wanted, &reads);
  for (const char* part : {"floor_div(convert(in1[0], s64) + 15, 16)*16", "serial b whole {",
                           "if rest > 0 {", "if rest > u_1*16 {", "in0[whole*64 + u_1*16 + l_1_1]"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_EQ(reads[0], 16);
}

TEST(Trim, RefusesWhatWouldNotStop) {
  std::vector<int64_t> reads;
  // Rows by threes; all rows and their elements in one loop; an index that is no sum.
  EXPECT_EQ(trimmed(rows("f32[8]",
                         "serial c 8 {\nacc[0] = 0:f32\nserial b 20 { unrolled u 3 {\n"
                         "acc[0] = acc[0] + in0[b*24 + u*8 + c]\n} }\nout0[c] = acc[0]\n}\n"),
                    request(true, false), &reads),
            "trim-reduced");
  EXPECT_EQ(trimmed(rows("f32[8]",
                         "acc[0] = 0:f32\nserial i 512 {\nacc[0] = acc[0] + in0[i]\n}\n"
                         "serial c 8 {\nout0[c] = acc[0]\n}\n"),
                    request(true, false), &reads),
            "trim-digit");
  EXPECT_EQ(trimmed(rows("f32[8]",
                         "acc[0] = 0:f32\nserial i 512 {\n"
                         "acc[0] = acc[0] + in0[floor_mod(i, 8)*64]\n}\n"
                         "serial c 8 {\nout0[c] = acc[0]\n}\n"),
                    request(true, false), &reads),
            "trim-index");
}

TEST(Trim, RequestsHaveText) {
  const Kernel kernel = rows("f32[512]", "serial i 512 { out0[i] = in0[i] }\n");
  const auto parsed = parse_trim_request(
      kernel, "extent in1 bound 64 least 17 times 2 reduced; in0 8; out0 8 reach 4");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->groups.size(), 1u);
  EXPECT_EQ(parsed->groups[0].extent, BufferId(size_t{1}));
  EXPECT_EQ(parsed->groups[0].bound, 64);
  EXPECT_EQ(parsed->groups[0].least, 17);
  EXPECT_EQ(parsed->groups[0].times, 2);
  EXPECT_TRUE(parsed->groups[0].reduced);
  ASSERT_EQ(parsed->globals.size(), 3u);
  EXPECT_EQ(parsed->globals[0].at(0).stride, 8);
  EXPECT_TRUE(parsed->globals[1].empty());
  EXPECT_EQ(parsed->reach, (std::vector<int64_t>{1, 1, 4}));
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"in0 8", "before any extent"},
           {"extent", "which buffer"},
           {"extent acc bound 4", "no global buffer `acc`"},
           {"extent in1 bound", "a number"},
           {"extent in1 bound x", "a number from 1 on was expected at `x`"},
           {"extent in1 breadth 4", "an extent has no `breadth`"},
           {"extent in1 bound 64; in0 8 9", "a buffer has no `9`"}}) {
    const auto wrong = parse_trim_request(kernel, text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_THAT(wrong.error().message, HasSubstr(part));
  }
}

}  // namespace
}  // namespace heddle::lower
