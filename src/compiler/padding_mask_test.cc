#include "compiler/padding_mask.h"

#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;

// Of a value of the fusion `f`, by its name.
bool may_be_known(const hlo::Module& module, const std::string& name) {
  const Instr* fusion = module.entry()->root();
  for (const Instr* instr : fusion->called().at(0)->instrs())
    if (instr->name() == name) return padding_may_be_known(instr, fusion, *module.entry());
  ADD_FAILURE() << "no " << name;
  return false;
}

TEST(PaddingMask, ProductsAreKnownBehindAMaskOnly) {
  const auto module = hlo::parse_module(R"(
HloModule m
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
f {
  x = f32[8,4] parameter(0)
  w = f32[4,4] parameter(1)
  n = s32[] parameter(2)
  d = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  twice = f32[8,4] add(d, d)
  beside = f32[8,4] add(d, x)
  own = f32[8,4] negate(x)
  at = s32[8] iota(), iota_dimension=0
  limit = s32[8] broadcast(n), dimensions={}
  less = pred[8] compare(at, limit), direction=LT
  there = pred[8,4] broadcast(less), dimensions={0}
  zero = f32[] constant(0)
  zeros = f32[8,4] broadcast(zero), dimensions={}
  masked = f32[8,4] select(there, twice, zeros)
  scaled = f32[8,4] multiply(masked, own)
  low = f32[] constant(-inf)
  most = f32[8] reduce(masked, low), dimensions={1}, to_apply=max
  largest = f32[8,4] broadcast(most), dimensions={0}
  share = f32[8,4] divide(masked, largest)
  lost = f32[8,4] divide(d, largest)
  ROOT all = (f32[8,4], f32[8,4]) tuple(beside, scaled)
}
ENTRY e {
  x = f32[8,4] parameter(0)
  w = f32[4,4] parameter(1)
  n = s32[] parameter(2)
  ROOT made = (f32[8,4], f32[8,4]) fusion(x, w, n), kind=kLoop, calls=f
})");
  ASSERT_TRUE(module) << module.error().message;
  for (const char* name : {"d", "twice", "beside", "most", "lost"})
    EXPECT_FALSE(may_be_known(**module, name)) << name;
  for (const char* name : {"own", "masked", "scaled", "share"})
    EXPECT_TRUE(may_be_known(**module, name)) << name;
}

}  // namespace
}  // namespace heddle::compiler
