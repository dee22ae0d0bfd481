// Rows that do not fill a whole number of vectors: several are handled as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FusionCheck check(int64_t rows, int64_t width, const char* target) {
  const std::string box = fmt::format("f32[{},{}]", rows, width);
  auto module = hlo::parse_module(fmt::format(
      "HloModule m\nENTRY main {{\n  x = {0} parameter(0)\n  by = f32[{1}] parameter(1)\n"
      "  g = {0} logistic(x)\n  bs = {0} broadcast(by), dimensions={{0}}\n"
      "  ROOT y = {0} multiply(g, bs)\n}}\n",
      box, rows));
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  FusionCheck checked = check_fusion(**module, *target::find_target(target), 5, 1);
  EXPECT_EQ(checked.failure, "") << checked.text;
  return checked;
}

TEST(FillLanes, AsManyRowsAsFillVectors) {
  const FusionCheck wide = check(64, 36, "icelake"), narrow = check(64, 36, "avx2");
  EXPECT_THAT(wide.placed.graph.stages[0].extents(), ElementsAre(16, 144));
  EXPECT_THAT(narrow.placed.graph.stages[0].extents(), ElementsAre(32, 72));
  EXPECT_THAT(wide.text, HasSubstr("unrolled"));
}

TEST(FillLanes, OthersStayAsTheyAre) {
  EXPECT_THAT(check(63, 36, "icelake").placed.graph.stages[0].extents(), ElementsAre(63, 36));
  EXPECT_THAT(check(64, 48, "icelake").placed.graph.stages[0].extents(), ElementsAre(64, 48));
  EXPECT_THAT(check(64, 99, "icelake").placed.graph.stages[0].extents(), ElementsAre(64, 99));
}

}  // namespace
}  // namespace heddle::compiler
