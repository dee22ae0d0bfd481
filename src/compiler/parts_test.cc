// Concatenations of many arrays: stored part by part.
#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"
#include "stage/parts.h"

namespace heddle::compiler {
namespace {

// `count` parameters of shape [rows, 1 + their number, inside], joined along dimension 1; every
// third one is used twice, the second time through a reshape.
std::unique_ptr<hlo::Module> joined(int rows, int count, int inside, const std::string& type) {
  std::string lines, names;
  int width = 0;
  for (int i = 0; i < count; ++i) {
    const std::string shape = fmt::format("{}[{},{},{}]", type, rows, i + 1, inside);
    lines += fmt::format("  p{} = {} parameter({})\n", i, shape, i);
    names += fmt::format("{}p{}", i ? ", " : "", i);
    width += i + 1;
    if (i % 3) continue;
    lines += fmt::format("  f{0} = {1}[{2}] reshape(p{0})\n  g{0} = {3} reshape(f{0})\n", i, type,
                         rows * (i + 1) * inside, shape);
    names += fmt::format(", g{}", i);
    width += i + 1;
  }
  auto module = hlo::parse_module(
      fmt::format("HloModule m\nENTRY main {{\n{}  ROOT r = {}[{},{},{}] concatenate({}), "
                  "dimensions={{1}}\n}}\n",
                  lines, type, rows, width, inside, names));
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

TEST(parts, EqualTheInterpreter) {
  struct Case {
    int rows, count, inside;
    const char* type;
  };
  for (const Case& c : {Case{3, 9, 5, "f32"}, Case{1, 8, 700, "f32"}, Case{2, 8, 2048, "s32"},
                        Case{4, 12, 2, "pred"}, Case{5, 8, 3, "s64"}}) {
    auto module = joined(c.rows, c.count, c.inside, c.type);
    const FusionCheck check = check_fusion(*module, target::host_target(), 7, 1);
    EXPECT_EQ(check.failure, "") << c.type << c.rows;
    EXPECT_EQ(check.placed.strategy, "parts");
  }
}

TEST(parts, AreForManyOfThem) {
  EXPECT_FALSE(stage::is_stored_by_parts(*joined(2, 4, 3, "f32")->entry()->root()));
  EXPECT_FALSE(stage::is_stored_by_parts(*joined(2, 9, 1, "f32")->entry()->root()));
  EXPECT_TRUE(stage::is_stored_by_parts(*joined(2, 9, 2, "f32")->entry()->root()));
}

}  // namespace
}  // namespace heddle::compiler
