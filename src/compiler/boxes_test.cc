// Dynamic-update-slices at the end of fusions: kernels store the slice in place.
#include <gtest/gtest.h>

#include "compiler/fusion_test_util.h"

namespace heddle::compiler {
namespace {

constexpr const char* kSum =
    "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n";

FusionCheck in_place(const std::string& entry, const char* target = "spr") {
  const std::string text = std::string("HloModule m\n") + kSum + "ENTRY e {\n" + entry + "}";
  FusionCheck check = proved(text, target, 5, 4000);
  EXPECT_FALSE(check.in_place.empty());
  return check;
}

TEST(boxes, StartsAreClampedInTheKernel) {
  for (const char* target : {"spr", "avx2"}) {
    const FusionCheck check = in_place(R"(
      c = f32[7,30,24] parameter(0) x = f32[2,5,24] parameter(1) p = s32[] parameter(2)
      far = s32[] constant(9) at = s32[] multiply(p, far) zero = s64[] constant(-3)
      y = f32[2,5,24] tanh(x)
      ROOT n = f32[7,30,24] dynamic-update-slice(c, y, p, at, zero), heddle_in_place=true
    )",
                                       target);
    EXPECT_EQ(check.in_place, std::vector<int>{0});
  }
}

TEST(boxes, TwoBoxesAndAnotherResult) {
  const FusionCheck check = in_place(R"(
    k = f32[3,40,16] parameter(0) v = bf16[40,3,16] parameter(1) x = f32[3,96] parameter(2)
    at = s64[] parameter(3) zero = s64[] constant(0)
    half = f32[] constant(0.5) halves = f32[3,96] broadcast(half), dimensions={}
    y = f32[3,96] multiply(x, halves)
    ks = f32[3,16] slice(y), slice={[0:3], [16:32]} kb = f32[3,1,16] reshape(ks)
    vs = f32[3,16] slice(y), slice={[0:3], [64:80]} vc = bf16[3,16] convert(vs)
    vb = bf16[1,3,16] reshape(vc)
    k1 = f32[3,40,16] dynamic-update-slice(k, kb, zero, at, zero), heddle_in_place=true
    v1 = bf16[40,3,16] dynamic-update-slice(v, vb, at, zero, zero), heddle_in_place=true
    ROOT t = (f32[3,40,16], f32[3,96], bf16[40,3,16]) tuple(k1, y, v1)
  )");
  EXPECT_EQ(check.in_place[0], 0);
  EXPECT_EQ(check.in_place[2], 1);
}

TEST(boxes, OfReductionsRowsAndProducts) {
  in_place(R"(
    c = f32[9,64] parameter(0) x = f32[64,200] parameter(1) p = s32[] parameter(2)
    none = f32[] constant(0) zero = s32[] constant(0)
    s = f32[64] reduce(x, none), dimensions={1}, to_apply=sum b = f32[1,64] reshape(s)
    w = f32[64,200] broadcast(s), dimensions={0} y = f32[64,200] divide(x, w)
    n = f32[9,64] dynamic-update-slice(c, b, p, zero), heddle_in_place=true
    ROOT t = (f32[9,64], f32[64,200]) tuple(n, y)
  )");
  in_place(R"(
    c = f32[4,90,50] parameter(0) x = f32[17,33] parameter(1) w = f32[33,50] parameter(2)
    p = s32[] parameter(3) zero = s32[] constant(0)
    d = f32[17,50] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    r = f32[17,50] tanh(d) b = f32[1,17,50] reshape(r)
    ROOT n = f32[4,90,50] dynamic-update-slice(c, b, zero, p, zero), heddle_in_place=true
  )");
  // A transposed product: adjacent rows are adjacent elements of the array.
  in_place(R"(
    c = f32[70,40] parameter(0) x = f32[32,33] parameter(1) w = f32[33,64] parameter(2)
    p = s32[] parameter(3) one = s32[] constant(5)
    d = f32[32,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    b = f32[64,32] transpose(d), dimensions={1,0}
    ROOT n = f32[70,40] dynamic-update-slice(c, b, p, one), heddle_in_place=true
  )");
}

TEST(boxes, AreRefusedWhereTheArrayIsRead) {
  auto target = target::find_target("spr");
  const auto module = parsed(R"(HloModule m
    ENTRY e {
      c = f32[32,24] parameter(0) p = s32[] parameter(1) zero = s32[] constant(0)
      x = f32[8,24] slice(c), slice={[3:11], [0:24]} y = f32[8,24] negate(x)
      ROOT n = f32[32,24] dynamic-update-slice(c, y, p, zero), heddle_in_place=true
    })");
  EXPECT_EQ(schedule::place(*module->entry(), *target).decision.code(), "in-place");
}

}  // namespace
}  // namespace heddle::compiler
