// split_complex: only the parts of complex numbers are computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kParts[] = R"(a = f32[3,4] parameter(0) b = f32[3,4] parameter(1)
c = f32[3,4] parameter(2) d = f32[3,4] parameter(3)
x = c64[3,4] complex(a, b) y = c64[3,4] complex(c, d)
)";

// For a complex z computed from x and y: its parts, without complex numbers.
void expect_split(const std::string& z, const std::string& extents = "3,4") {
  const std::string text = std::string(kParts) + z + "\nre = f32[" + extents +
                           "] real(z) im = f32[" + extents + "] imag(z)\nROOT r = (f32[" + extents +
                           "], f32[" + extents + "]) tuple(re, im)";
  const std::string after = simplified(
      text, "split_complex,split_complex_dots,{algebraic,fold_constants,cse,dce}*", true);
  EXPECT_THAT(after, Not(HasSubstr("complex("))) << z;
  EXPECT_THAT(after, Not(HasSubstr("real("))) << z;
}

TEST(SplitComplex, Arithmetic) {
  for (const char* opcode : {"add", "subtract", "multiply", "divide"})
    expect_split(std::string("z = c64[3,4] ") + opcode + "(x, y)");
  for (const char* opcode : {"negate", "exponential"})
    expect_split(std::string("z = c64[3,4] ") + opcode + "(x)");
  expect_split(
      "k = c64[] constant((2, -1)) kk = c64[3,4] broadcast(k), dimensions={}\n"
      "z = c64[3,4] multiply(x, kk)");
  expect_split("p = pred[3,4] compare(x, y), direction=NE z = c64[3,4] select(p, x, y)");
  expect_split("f = c64[3,4] convert(c) z = c64[3,4] add(x, f)");
}

TEST(SplitComplex, MovementSumsAndProducts) {
  expect_split("z = c64[4,3] transpose(x), dimensions={1,0}", "4,3");
  expect_split("z = c64[12] reshape(x)", "12");
  expect_split("z = c64[6,4] concatenate(x, y), dimensions={0}", "6,4");
  expect_split("k = c64[] constant((1, 2))\nz = c64[5,4] pad(x, k), padding=1_1x0_0", "5,4");
  expect_split("z = c64[3,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "3,3");
}

// As in C: infinities by numbers, numbers by infinities and zeros.
TEST(SplitComplex, QuotientsWithoutLimits) {
  auto module = parse(R"(HloModule m
ENTRY e {
  x = c64[6] constant({(1,2), (inf,2), (3,-inf), (1,-1), (0,5), (-inf,inf)})
  y = c64[6] constant({(inf,1), (2,1), (-1,4), (0,0), (-0,0), (3,-4)})
  ROOT z = c64[6] divide(x, y) })");
  auto before = module->clone();
  run(*module, "split_complex");
  expect_same_values(*before, *module, 1, true, "quotients");
}

TEST(SplitComplex, Moduli) {
  const std::string text = std::string(kParts) + "ROOT r = f32[3,4] abs(x)";
  EXPECT_THAT(simplified(text, "split_complex,algebraic,dce", true), Not(HasSubstr("complex(")));
}

TEST(SplitComplex, StatesOfLoops) {
  const std::string text = R"(
goes_on { s = (s32[], c64[4], c64[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5) ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], c64[4], c64[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  z = c64[4] get-tuple-element(s), index=1 c = c64[4] get-tuple-element(s), index=2
  one = s32[] constant(1) j = s32[] add(i, one) q = c64[4] multiply(z, c) w = c64[4] add(q, c)
  ROOT r = (s32[], c64[4], c64[4]) tuple(j, w, c) }
ENTRY e { a = f32[4] parameter(0) b = f32[4] parameter(1) x = c64[4] complex(a, b)
  zero = s32[] constant(0) t = (s32[], c64[4], c64[4]) tuple(zero, x, x)
  l = (s32[], c64[4], c64[4]) while(t), condition=goes_on, body=step
  y = c64[4] get-tuple-element(l), index=1
  ROOT r = f32[4] abs(y) })";
  auto module = parse(text);
  auto before = module->clone();
  run(*module, "split_complex,{fold_tuples,algebraic,cse,dce}*");
  expect_same_values(*before, *module, 3, true, text);
  for (const auto& computation : module->computations())
    for (const hlo::Instr* instr : computation->instrs())
      EXPECT_FALSE(instr->shape().is_array() && tensor::is_complex(instr->shape().type()))
          << instr->name();
}

TEST(SplitComplex, WhatIsWholeStays) {
  expect_unchanged(
      "x = c64[3,4] parameter(0)\nROOT r = c64[3,4] fft(x), fft_type=FFT, fft_length={4}",
      "split_complex");
}

}  // namespace
}  // namespace heddle::opt
