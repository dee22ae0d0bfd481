// gemv_to_gemm: products of few rows with one matrix become one product.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;

int64_t dots_after(const std::string& text) {
  auto module = parse(text);
  auto before = module->clone();
  run(*module, "gemv_to_gemm,dce");
  expect_same_values(*before, *module, 3, false, "gemv_to_gemm");
  EXPECT_FALSE(run(*module, "gemv_to_gemm").changed);
  const auto& all = module->entry()->instrs();
  return std::count_if(all.begin(), all.end(), [](const Instr* i) { return i->is(Opcode::dot); });
}

TEST(GemvToGemm, RowsBelowEachOther) {
  EXPECT_EQ(
      dots_after("w = f32[256,300] parameter(0)\n"
                 "x = f32[1,256] parameter(1) y = f32[3,256] parameter(2)\n"
                 "z = f32[256] parameter(3)\n"
                 "a = f32[1,300] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "b = f32[3,300] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "c = f32[300] dot(z, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
                 "t = f32[3,300] tanh(b) ROOT r = tuple(a, t, c)"),
      1);
}

TEST(GemvToGemm, MatrixOnTheLeft) {
  EXPECT_EQ(
      dots_after("w = f32[300,256] parameter(0)\n"
                 "x = f32[256] parameter(1) y = f32[256,2] parameter(2)\n"
                 "a = f32[300] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "b = f32[300,2] dot(w, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "ROOT r = tuple(a, b)"),
      1);
}

TEST(GemvToGemm, StepsOfARecurrenceStayApart) {
  const std::string steps =
      "w = f32[256,256] parameter(0) x = f32[1,256] parameter(1) y = f32[1,256] parameter(2)\n"
      "a = f32[1,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "t = f32[1,256] tanh(a)\n"
      "b = f32[1,256] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  EXPECT_EQ(dots_after(steps + "ROOT r = tuple(a, b)"), 2);
  // A product that depends on neither joins the first group.
  EXPECT_EQ(dots_after(steps + "c = f32[1,256] dot(y, w), lhs_contracting_dims={1}, "
                               "rhs_contracting_dims={0}\nROOT r = tuple(a, b, c)"),
            2);
}

TEST(GemvToGemm, OthersStay) {
  EXPECT_EQ(
      dots_after("w = f32[16,16] parameter(0) x = f32[1,16] parameter(1)\n"
                 "y = f32[1,16] parameter(2)\n"
                 "a = f32[1,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "b = f32[1,16] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "ROOT r = tuple(a, b)"),
      2)
      << "a small matrix";
  EXPECT_EQ(
      dots_after("w = f32[256,256] parameter(0) x = f32[40,256] parameter(1)\n"
                 "y = f32[40,256] parameter(2)\n"
                 "a = f32[40,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "b = f32[40,256] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                 "ROOT r = tuple(a, b)"),
      2)
      << "rows enough";
}

}  // namespace
}  // namespace heddle::opt
