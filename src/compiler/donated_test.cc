#include "compiler/donated.h"

#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::compiler {
namespace {

// If two results may overwrite the same array, the one that it is donated to does; the other takes
// another free array, if any.
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
