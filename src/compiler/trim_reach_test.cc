#include "compiler/trim_reach.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::compiler {
namespace {

// Whether loops over the n rows of x, input 0 of the fusion, may be those that reduce something
// that is all there.
bool may_share(const std::string& fused, const std::string& inputs, const std::string& results) {
  const auto module = hlo::parse_module(fmt::format(
      R"(HloModule joined, heddle_symbols={{n 8 2 1 0.0}}
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
f {{
{}
}}
ENTRY main {{
{}
  n = s32[] parameter(2)
  ROOT made = {} fusion(x, y), kind=kLoop, calls=f
}})",
      inputs + fused, inputs, results));
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  hlo::DimClasses classes(**module, hlo::DimClasses::Made::free);
  EXPECT_TRUE(classes.assign((*module)->symbols));
  const hlo::Instr* fusion = (*module)->entry()->root();
  const hlo::DimClasses local(fusion, classes);
  const hlo::Computation& inside = *fusion->called().at(0);
  const std::vector<const hlo::Instr*> all(inside.instrs().begin(), inside.instrs().end());
  return shared_with_fixed(all, classes, local).contains(local.of(inside.parameters()[0], 0));
}

bool may_share_sum(int64_t elems) {
  return may_share(R"(
  zero = f32[] constant(0)
  e = f32[8] exponential(x)
  s = f32[] reduce(y, zero), dimensions={0}, to_apply=add
  ROOT both = (f32[8], f32[]) tuple(e, s))",
                   fmt::format("  x = f32[8] parameter(0)\n  y = f32[{}] parameter(1)\n", elems),
                   "(f32[8], f32[])");
}

TEST(TrimReach, LoopsOfEqualExtentMayReduceWhatIsAllThere) {
  EXPECT_TRUE(may_share_sum(8));
  EXPECT_FALSE(may_share_sum(9));
}

// A product over as many channels as there may be rows is made row by row: its weights are no array
// that a loop over the rows could reduce.
TEST(TrimReach, WeightsOfAProductAreReducedForEachRow) {
  EXPECT_FALSE(may_share(R"(
  ROOT p = f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
                         "  x = f32[8,8] parameter(0)\n  y = f32[8,4] parameter(1)\n", "f32[8,4]"));
}

}  // namespace
}  // namespace heddle::compiler
