// Running sums of rows, and other cumulative combines, with their producers and consumers
// (stitch/scan.cc): tests of the generated kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::stitch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

compiler::FusionCheck run(const std::string& text, const char* target = "icelake",
                          int64_t length = 64) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  compiler::FusionCheck checked =
      compiler::check_fusion(**module, *target::find_target(target), 5, length);
  EXPECT_EQ(checked.failure, "") << checked.text;
  EXPECT_EQ(checked.placed.strategy, "scan");
  return checked;
}

// `op` over dimension `along` of x, from both ends; `rest`: the readers of `s`, with the root.
std::string cumulative(const std::string& type, std::vector<int64_t> extents, size_t along,
                       bool down, const std::string& rest, const std::string& op = "add",
                       const std::string& init = "0") {
  const std::string box = fmt::format("{}[{}]", type, fmt::join(extents, ","));
  std::string sizes, pads;
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t pad = d == along ? extents[d] - 1 : 0;
    sizes += fmt::format("{}{}", d ? "x" : "", pad + 1);
    pads += fmt::format("{}{}_{}", d ? "x" : "", down ? 0 : pad, down ? pad : 0);
  }
  std::string text = fmt::format(R"(HloModule m
op {{ a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] {}(a, b) }}
ENTRY e {{
  x = BOX parameter(0)
  y = BOX negate(x)
  z = T[] constant({})
  s = BOX reduce-window(y, z), window={{size={} pad={}}}, to_apply=op
  {}
}})",
                                 op, init, sizes, pads, rest);
  for (const auto& [word, with] : {std::pair("BOX", box), std::pair("T[", type + "[")})
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += with.size())
      text.replace(at, std::string(word).size(), with);
  return text;
}

TEST(ScanTest, AlongTheLanes) {
  for (const char* target : {"icelake", "avx2", "portable"})
    for (const int64_t width : {2, 15, 16, 17, 48, 200})
      for (const bool down : {false, true})
        run(cumulative("f32", {6, width}, 1, down, "ROOT r = BOX abs(s)"), target);
}

TEST(ScanTest, OneRow) {
  run(cumulative("f32", {77}, 0, false, "ROOT r = BOX abs(s)"));
  run(cumulative("s32", {77}, 0, true, "ROOT r = BOX abs(s)"));
}

TEST(ScanTest, AcrossTheLanes) {
  for (const bool down : {false, true}) {
    run(cumulative("f32", {9, 40}, 0, down, "ROOT r = BOX abs(s)"));
    run(cumulative("f32", {3, 9, 5, 7}, 1, down, "ROOT r = BOX abs(s)"));
    run(cumulative("f32", {9, 3, 40}, 0, down, "ROOT r = BOX abs(s)"));
  }
}

TEST(ScanTest, TypesAndOperators) {
  for (const char* type : {"f64", "bf16", "f16", "s8", "s64"})
    run(cumulative(type, {4, 35}, 1, false, "ROOT r = BOX negate(s)"));
  for (const char* op : {"maximum", "minimum", "multiply"})
    run(cumulative("f32", {4, 35}, 1, true, "ROOT r = BOX abs(s)", op, "0.5"));
  run(cumulative("s32", {4, 35}, 1, false, "ROOT r = BOX abs(s)", "or", "6"));
}

TEST(ScanTest, Readers) {
  // Readers at the same element (the values are results too); reversed; by a sum; at two offsets.
  run(cumulative("f32", {4, 33}, 1, false,
                 "e = BOX exponential(s) ROOT r = (BOX, BOX, BOX) tuple(e, s, y)"));
  run(cumulative("f32", {4, 33}, 1, false,
                 "v = BOX reverse(s), dimensions={1} ROOT r = BOX add(v, y)"));
  run(cumulative("f32", {4, 33}, 1, true, R"(t = T[4] reduce(s, z), dimensions={1}, to_apply=op
  b = BOX broadcast(t), dimensions={0} ROOT r = BOX divide(s, b))"));
  run(cumulative("f32", {4, 32}, 1, false, R"(h = T[4,31] slice(s), slice={[0:4],[1:32]}
  l = T[4,31] slice(s), slice={[0:4],[0:31]} ROOT r = T[4,31] subtract(h, l))"));
}

TEST(ScanTest, OfAnother) {
  run(cumulative("f32", {4, 33}, 1, false,
                 "ROOT r = BOX reduce-window(s, z), window={size=1x33 pad=0_0x32_0}, to_apply=op"));
  run(cumulative("f32", {4, 33}, 1, false,
                 "ROOT r = BOX reduce-window(s, z), window={size=1x33 pad=0_0x0_32}, to_apply=op"));
  run(cumulative("f32", {4, 33}, 1, false,
                 "ROOT r = BOX reduce-window(s, z), window={size=4x1 pad=3_0x0_0}, to_apply=op"));
}

TEST(ScanTest, ReshapedBeforeAndBehind) {
  run(R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[4,6,8] parameter(0)
  y = f32[4,48] reshape(x)
  z = f32[] constant(0)
  s = f32[4,48] reduce-window(y, z), window={size=1x48 pad=0_0x47_0}, to_apply=add
  t = f32[4,3,16] reshape(s)
  ROOT r = f32[4,3,16] negate(t)
})");
}

// One loop: the row is read once, and consumers are computed along with the sums.
TEST(ScanTest, IsFusedWithItsRow) {
  const auto checked = run(cumulative("f32", {64, 512}, 1, false, "ROOT r = BOX exponential(s)"));
  EXPECT_EQ(checked.kernel.scratch_bytes, 0);
  EXPECT_THAT(checked.text, HasSubstr("s & r : vector"));
}

// Without fast forms in the order of the elements: the same bits as the reference.
TEST(ScanTest, ExactWithoutFastForms) {
  auto module = hlo::parse_module(cumulative("f32", {4, 200}, 1, false, "ROOT r = BOX abs(s)"));
  ASSERT_TRUE(module.has_value());
  const auto placed = schedule::place(*(*module)->entry(), *target::find_target("icelake"), false);
  ASSERT_TRUE(placed.decision) << placed.decision.reason();
  EXPECT_TRUE(placed.graph.stages.at(0).exact);
}

}  // namespace
}  // namespace heddle::stitch
