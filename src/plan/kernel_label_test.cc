#include "plan/kernel_label.h"

#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::plan {
namespace {

std::string label(const std::string& instrs) {
  auto module = hlo::parse_module(
      "HloModule m\n"
      "mx { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"
      "sm { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
      "ENTRY e { x = f32[8,8] parameter(0) y = f32[8,8] parameter(1) z = f32[] constant(0)\n" +
      instrs + "}\n");
  EXPECT_TRUE(module) << module.error().message;
  return module ? kernel_label(*(*module)->entry()) : "";
}

TEST(KernelLabel, NamesWhatCostsMost) {
  const std::string dot = "d = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  EXPECT_EQ(label(dot + "ROOT r = tanh(d)"), "dot_tanh");
  EXPECT_EQ(label(dot + "t = transpose(d), dimensions={1,0} ROOT r = add(t, y)"), "dot_add");
  EXPECT_EQ(label("a = add(x, y) ROOT r = tanh(a)"), "tanh_add");
  EXPECT_EQ(label("ROOT r = transpose(x), dimensions={1,0}"), "transpose");
  EXPECT_EQ(label("ROOT r = f32[64] reshape(x)"), "copy");
  EXPECT_EQ(label("s = f32[8] reduce(x, z), dimensions={1}, to_apply=sm ROOT r = negate(s)"),
            "reduce_negate");
}

TEST(KernelLabel, KnowsFunctions) {
  const std::string softmax =
      "m = f32[8] reduce(x, z), dimensions={1}, to_apply=mx\n"
      "mb = f32[8,8] broadcast(m), dimensions={0} s = subtract(x, mb) e = exponential(s)\n"
      "t = f32[8] reduce(e, z), dimensions={1}, to_apply=sm\n"
      "tb = f32[8,8] broadcast(t), dimensions={0}";
  EXPECT_EQ(label(softmax + " ROOT r = divide(e, tb)"), "softmax");
  EXPECT_EQ(label("zs = f32[8,8] broadcast(z), dimensions={}\n"
                  "p = pred[8,8] compare(y, zs), direction=GT\n" +
                  softmax + " q = divide(e, tb) ROOT r = select(p, q, zs)"),
            "softmax_compare_select");
  EXPECT_EQ(
      label(softmax + " q = divide(e, tb)\n"
                      "ROOT r = dot(q, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
      "softmax_dot");
  EXPECT_EQ(label("q = multiply(x, x) t = f32[8] reduce(q, z), dimensions={1}, to_apply=sm\n"
                  "i = rsqrt(t) ib = f32[8,8] broadcast(i), dimensions={0}\n"
                  "ROOT r = multiply(x, ib)"),
            "norm");
  EXPECT_EQ(label("e = erf(x) ROOT r = multiply(e, x)"), "gelu");
}

TEST(KernelLabel, IsUnique) {
  auto module = hlo::parse_module(
      "HloModule m\nf { p = f32[4] parameter(0) ROOT r = tanh(p) }\n"
      "ENTRY e { x = f32[4] parameter(0) a = f32[4] fusion(x), kind=kLoop, calls=f\n"
      "ROOT b = f32[4] fusion(a), kind=kLoop, calls=f }\n");
  ASSERT_TRUE(module);
  KernelLabels labels;
  EXPECT_EQ(labels.label_of(*(*module)->entry()->find("a")), "tanh");
  EXPECT_EQ(labels.label_of(*(*module)->entry()->find("b")), "tanh.2");
}

}  // namespace
}  // namespace heddle::plan
