// Epilogue (iv): reductions over the rows of a product in its kernel, checked by the kernel
// interpreter against the reference.
#include <algorithm>

#include "compiler/fusion_test_util.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;
using compiler::parsed;

FusionCheck checked(const std::string& text, const char* target_name) {
  FusionCheck check = compiler::proved(text, target_name, 5, 8192);
  EXPECT_TRUE(is_gemm(check.placed)) << text;
  return check;
}

constexpr const char* kCombines = R"(HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
)";

// t = tanh(A·B): its sums over the rows, the maximum of its squares minus an input, and, if
// `leaves`, t itself.
std::string product(int64_t m, int64_t n, int64_t k, bool leaves) {
  return kCombines + fmt::format(R"(ENTRY e {{
  a = f32[{0},{2}] parameter(0)
  b = f32[{2},{1}] parameter(1)
  y = f32[{0},{1}] parameter(2)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  d = f32[{0},{1}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{0},{1}] tanh(d)
  s = f32[{1}] reduce(t, zero), dimensions={{0}}, to_apply=sum
  q = f32[{0},{1}] multiply(t, t)
  r = f32[{0},{1}] subtract(q, y)
  g = f32[{1}] reduce(r, least), dimensions={{0}}, to_apply=most
  ROOT o = ({3}f32[{1}], f32[{1}]) tuple({4}s, g)
}})",
                                 m, n, k, leaves ? fmt::format("f32[{},{}], ", m, n) : "",
                                 leaves ? "t, " : "");
}

// A sum for each image of a batch: an image is a block of rows.
std::string images(int64_t batch, int64_t side, int64_t features, bool leaves) {
  return kCombines + fmt::format(R"(ENTRY e {{
  a = f32[{0},24] parameter(0)
  b = f32[24,{3}] parameter(1)
  y = f32[{1},{2},{2},{3}] parameter(2)
  zero = f32[] constant(0)
  scale = f32[] constant(0.25)
  d = f32[{0},{3}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  i = f32[{1},{2},{2},{3}] reshape(d)
  r = f32[{1},{2},{2},{3}] add(i, y)
  t = f32[{1},{2},{2},{3}] tanh(r)
  s = f32[{1},{3}] reduce(t, zero), dimensions={{1,2}}, to_apply=sum
  scales = f32[{1},{3}] broadcast(scale), dimensions={{}}
  {4}m = f32[{1},{3}] multiply(s, scales)
  {5}
}})",
                                 batch * side * side, batch, side, features, leaves ? "" : "ROOT ",
                                 leaves
                                     ? fmt::format("ROOT o = (f32[{0},{2}], f32[{0},{1},{1},{2}]) "
                                                   "tuple(m, t)",
                                                   batch, side, features)
                                     : "");
}

TEST(ColumnSumsTest, ImagesOfABatchAreBlocksOfRows) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    checked(images(2, 3, 10, false), target);
    checked(images(3, 7, 40, true), target);
  }
  checked(images(5, 20, 33, true), "icelake");
}

TEST(ColumnSumsTest, SumsOfAProduct) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    for (bool leaves : {false, true}) {
      checked(product(49, 40, 20, leaves), target);
      checked(product(14, 16, 8, leaves), target);
    }
  }
}

// More rows than one task has: partial sums by task, and a second phase.
TEST(ColumnSumsTest, PartialSumsLeaveWithTheTask) {
  for (const char* target : {"icelake", "avx2"}) {
    FusionCheck check = checked(product(1024, 35, 12, true), target);
    EXPECT_EQ(check.kernel.phases.size(), 2u);
  }
  EXPECT_EQ(checked(product(100, 35, 12, true), "icelake").kernel.phases.size(), 1u);
}

// A number of rows without a good divisor: one task has all of them, or it is not fused.
TEST(ColumnSumsTest, RowsWithoutDivisors) {
  EXPECT_EQ(checked(product(523, 600, 9, false), "icelake").kernel.phases.size(), 1u);
  stage::PlacedFusion placed = schedule::place(*parsed(product(8191, 16, 9, false))->entry(),
                                               *target::find_target("icelake"));
  EXPECT_EQ(placed.decision.code(), "gemm-epilogue");
}

// The mean over the lines and rows of every picture, as a network's head has it.
TEST(ColumnSumsTest, MeansOfAConvolution) {
  for (int batch : {1, 3}) {
    for (int lines : {7, 24}) {
      checked(kCombines + fmt::format(R"(ENTRY e {{
  x = f32[{0},{1},9,4] parameter(0)
  w = f32[3,3,4,19] parameter(1)
  zero = f32[] constant(0)
  scale = f32[] constant(0.125)
  c = f32[{0},{1},9,19] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  t = f32[{0},{1},9,19] tanh(c)
  s = f32[{0},19] reduce(t, zero), dimensions={{1,2}}, to_apply=sum
  scales = f32[{0},19] broadcast(scale), dimensions={{}}
  ROOT r = f32[{0},19] multiply(s, scales)
}})",
                                      batch, lines),
              "icelake");
    }
  }
}

TEST(ColumnSumsTest, RowsCountedThrough) {
  checked(std::string(kCombines) + R"(ENTRY e {
  a = f32[49,20] parameter(0)
  b = f32[20,24] parameter(1)
  y = f32[1,7,7,24] parameter(2)
  zero = f32[] constant(0)
  d = f32[49,24] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[1,7,7,24] reshape(d)
  t = f32[1,7,7,24] add(r, y)
  ROOT s = f32[1,24] reduce(t, zero), dimensions={1,2}, to_apply=sum
})",
          "icelake");
}

}  // namespace
}  // namespace heddle::stitch
