// Transposes after a product, in its kernel (fuse/merge_turns.cc, stitch/gemm_turned.cc): checked
// by the kernel interpreter against the reference.
#include <algorithm>

#include "compiler/fusion_test_util.h"
#include "cost/strides.h"
#include "fuse/fuse.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "tensor/compare.h"

namespace heddle::stitch {
namespace {

using compiler::parsed;

// tanh(A·B + b), transposed.
std::string product(int64_t m, int64_t n, int64_t k) {
  return fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[{0},{2}] parameter(0)
  w = f32[{2},{1}] parameter(1)
  b = f32[{1}] parameter(2)
  d = f32[{0},{1}] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  bs = f32[{0},{1}] broadcast(b), dimensions={{1}}
  s = f32[{0},{1}] add(d, bs)
  t = f32[{0},{1}] tanh(s)
  ROOT r = f32[{1},{0}] transpose(t), dimensions={{1,0}}
}})",
                     m, n, k);
}

// relu(conv + b), the features before the pixels; `leaves`: the plain result is an output too.
std::string picture(int64_t batch, int64_t lines, int64_t columns, int64_t features, bool leaves) {
  const std::string pixels = fmt::format("f32[{},{},{},{}]", batch, lines, columns, features);
  const std::string planes = fmt::format("f32[{},{},{},{}]", batch, features, lines, columns);
  return fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[{0},{1},{2},5] parameter(0)
  w = f32[3,3,5,{3}] parameter(1)
  b = f32[{3}] parameter(2)
  zero = f32[] constant(0)
  c = {4} convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  bs = {4} broadcast(b), dimensions={{3}}
  s = {4} add(c, bs)
  z = {4} broadcast(zero), dimensions={{}}
  r = {4} maximum(s, z)
  {6}p = {5} transpose(r), dimensions={{0,3,1,2}}
  {7}
}})",
                     batch, lines, columns, features, pixels, planes, leaves ? "" : "ROOT ",
                     leaves ? fmt::format("ROOT t = ({}, {}) tuple(p, r)", planes, pixels) : "");
}

compiler::FusionCheck checked(const std::string& text, const char* target_name) {
  compiler::FusionCheck check = compiler::proved(text, target_name, 9, 256);
  EXPECT_TRUE(is_gemm(check.placed)) << text;
  return check;
}

// Whole vectors of columns, and a last one that is not full: transposed from four elements on.
TEST(TurnedTest, ColumnsBeforeRows) {
  for (const char* target : {"icelake", "avx2", "portable"})
    for (int64_t n : {16, 5, 21, 37, 34})
      for (int64_t m : {64, 23}) checked(product(m, n, 9), target);
  EXPECT_EQ(cost::scattered_stores(checked(product(64, 21, 9), "icelake").placed), 0);
  EXPECT_EQ(cost::scattered_stores(checked(product(64, 34, 9), "icelake").placed), 64 * 2);
}

TEST(TurnedTest, FeaturesBeforePixels) {
  for (const char* target : {"icelake", "avx2"}) {
    for (int64_t features : {3, 7, 24}) {
      checked(picture(1, 6, 9, features, false), target);
      checked(picture(2, 5, 17, features, true), target);
    }
    checked(picture(1, 4, 4, 20, false), target);  // tiles of several lines
  }
}

int kernels(const std::string& text, std::vector<fuse::Refusal>* refusals) {
  auto target = target::find_target("icelake");
  auto before = parsed(text);
  auto module = before->clone();
  EXPECT_TRUE(fuse::fuse(module.get(), *target, fuse::Mode::stitch, refusals).has_value());
  EXPECT_TRUE(hlo::verify(*module).has_value());
  const std::vector<tensor::Literal> arguments = interp::random_arguments(*before, 5);
  auto want = interp::evaluate(*before, arguments), got = interp::evaluate(*module, arguments);
  EXPECT_TRUE(want.has_value() && got.has_value());
  auto compare = [](const tensor::Literal& one, const tensor::Literal& other) {
    auto same = tensor::compare(one, other, tensor::derived_tolerance(tensor::Type::f32, 256));
    EXPECT_TRUE(same.equal) << same.describe();
  };
  if (want && got && !want->shape().is_tuple()) compare(*got, *want);
  if (want && got && want->shape().is_tuple())
    for (size_t i = 0; i < want->elements().size(); ++i)
      compare(got->elements()[i], want->elements()[i]);
  int count = 0;
  for (const hlo::Instr* instr : module->entry()->instrs()) count += instr->is(hlo::Opcode::fusion);
  return count;
}

TEST(TurnedTest, OneKernel) {
  std::vector<fuse::Refusal> refusals;
  EXPECT_EQ(kernels(picture(1, 24, 24, 24, false), &refusals), 1);
  EXPECT_EQ(kernels(picture(1, 24, 24, 24, true), &refusals), 1);
  EXPECT_EQ(kernels(product(96, 40, 9), &refusals), 1);
}

// If many elements would have to be stored singly, a separate kernel transposes.
TEST(TurnedTest, ApartWhereItIsCheaper) {
  std::string text = product(4096, 66, 4);
  text.replace(text.find("ROOT r = f32[66,4096] transpose(t), dimensions={1,0}"), 53,
               "v = f32[64,64,66] reshape(t)\n"
               "  ROOT r = f32[64,66,64] transpose(v), dimensions={1,2,0}\n");
  std::vector<fuse::Refusal> refusals;
  EXPECT_EQ(kernels(text, &refusals), 2);
  EXPECT_TRUE(std::any_of(refusals.begin(), refusals.end(), [](const fuse::Refusal& refusal) {
    return refusal.code == "across-lanes";
  }));
}

}  // namespace
}  // namespace heddle::stitch
