#include "compiler/trim_reach.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::compiler {
namespace {

// Whether loops over the n rows of x may be those that reduce y, of `elems` elements.
bool may_share(int64_t elems) {
  const auto module = hlo::parse_module(fmt::format(
      R"(HloModule joined, heddle_symbols={{n 8 2 1 0.0}}
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
f {{
  x = f32[8] parameter(0)
  y = f32[{0}] parameter(1)
  zero = f32[] constant(0)
  e = f32[8] exponential(x)
  s = f32[] reduce(y, zero), dimensions={{0}}, to_apply=add
  ROOT both = (f32[8], f32[]) tuple(e, s)
}}
ENTRY main {{
  x = f32[8] parameter(0)
  y = f32[{0}] parameter(1)
  n = s32[] parameter(2)
  ROOT made = (f32[8], f32[]) fusion(x, y), kind=kLoop, calls=f
}})",
      elems));
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  hlo::DimClasses classes(**module, hlo::DimClasses::Made::free);
  EXPECT_TRUE(classes.assign((*module)->symbols));
  const hlo::Instr* fusion = (*module)->entry()->root();
  const hlo::DimClasses local(fusion, classes);
  const hlo::Computation& inside = *fusion->called().at(0);
  const std::vector<const hlo::Instr*> all(inside.instrs().begin(), inside.instrs().end());
  return shared_with_fixed(all, classes, local).contains(local.of(inside.parameters()[0], 0));
}

TEST(TrimReach, LoopsOfEqualExtentMayReduceWhatIsAllThere) {
  EXPECT_TRUE(may_share(8));
  EXPECT_FALSE(may_share(9));
}

}  // namespace
}  // namespace heddle::compiler
