#include "compiler/donated.h"

#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "hlo/text.h"
#include "program/program.h"

namespace heddle::compiler {
namespace {

// The kernel that reads the array stands in front of the one that writes over it, not beside.
TEST(Donated, ReadersStandInFront) {
  auto module = hlo::parse_module(R"(
HloModule m, input_output_alias={ {2}: (0, {}, may-alias) }

later {
  v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  goes = pred[] compare(w, v), direction=GT
  x = f32[] select(goes, w, v)
  k = s32[] select(goes, j, i)
  ROOT t = (f32[], s32[]) tuple(x, k)
}

ENTRY main {
  p = f32[2048,1024] parameter(0)
  i = s32[2048,1024] iota(), iota_dimension=1
  least = f32[] constant(-inf)
  zero = s32[] constant(0)
  r = (f32[2048], s32[2048]) reduce(p, i, least, zero), dimensions={1}, to_apply=later
  v = f32[2048] get-tuple-element(r), index=0
  place = s32[2048] get-tuple-element(r), index=1
  two = f32[] constant(2)
  twos = f32[2048,1024] broadcast(two), dimensions={}
  q = f32[2048,1024] multiply(p, twos)
  ROOT t = (f32[2048], s32[2048], f32[2048,1024]) tuple(v, place, q)
})");
  ASSERT_TRUE(module) << module.error().message;
  auto program = compile(std::move(*module), {}, *target::find_target("spr"), {});
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->commands.size(), 2u);  // and no copy
  EXPECT_EQ(program->memory.plan_bytes, 0);
}

// Of two results that may be written over an array it is the donated one's; the other gives way to
// an array that is free.
TEST(Donated, OneResultIsWrittenOverAnInput) {
  auto module = hlo::parse_module(R"(
HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }
both {
  p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  a = f32[64] add(p, q)
  b = f32[64] multiply(p, q)
  ROOT t = (f32[64], f32[64]) tuple(a, b)
}
ENTRY main {
  p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  f = (f32[64], f32[64]) fusion(p, q), kind=kLoop, calls=both
  a = f32[64] get-tuple-element(f), index=0
  b = f32[64] get-tuple-element(f), index=1
  ROOT t = (f32[64], f32[64]) tuple(a, b)
})");
  ASSERT_TRUE(module) << module.error().message;
  const hlo::Instr& fusion = *(*module)->entry()->root()->operand(0)->operand(0);
  stitch::Stitched stitched;
  stitched.in_place = {0, -1};
  stitched.may_overwrite = {{0}, {0}};
  EXPECT_EQ(inputs_to_overwrite(fusion, stitched), (std::vector<int>{-1, 0}));
  stitched.may_overwrite = {{0, 1}, {0}};
  EXPECT_EQ(inputs_to_overwrite(fusion, stitched), (std::vector<int>{1, 0}));
}

}  // namespace
}  // namespace heddle::compiler
