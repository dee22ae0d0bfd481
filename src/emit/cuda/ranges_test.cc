#include "emit/cuda/ranges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernel/text.h"

namespace heddle::emit::cuda {
namespace {

// The range of the index of a kernel's only store: x is 0 to 9, y 0 to 3.
std::string range_of(const std::string& index) {
  auto kernel = kernel::parse_kernel(
      "heddle.kernel 1\nkernel k {\n  target \"sm_90\"\n  buffer out0: f32[64] global out\n"
      "  phase {\n    group grid (x 10, y 4) threads 32 {\n      serial z 1 {\n        let i = " +
      index + "\n        out0[i] = 1:f32\n      }\n    }\n  }\n}\n");
  if (!kernel) return kernel.error().message;
  const Ranges ranges(*kernel);
  for (const kernel::Stmt& stmt : kernel->phases[0].groups[0].body[0].body)
    if (stmt.kind == kernel::StmtKind::let) {
      const IntRange& range = ranges.of(stmt.var);
      return fmt::format("{}..{}", range.low, range.high);
    }
  return "no let";
}

TEST(Ranges, OfArithmeticHaveTheEndsOfTheirOperands) {
  EXPECT_EQ(range_of("x + y"), "0..12");
  EXPECT_EQ(range_of("x - y"), "-3..9");
  EXPECT_EQ(range_of("y - x"), "-9..3");
  EXPECT_EQ(range_of("x*y"), "0..27");
  EXPECT_EQ(range_of("(x - 4)*y"), "-12..15");
}

// An index is computed in `int` if its range fits, but not if it is one too large.
TEST(Ranges, ThatFitIntoAnInt) {
  EXPECT_TRUE((IntRange{INT32_MIN, INT32_MAX}).narrow());
  EXPECT_FALSE((IntRange{0, int64_t{INT32_MAX} + 1}).narrow());
  EXPECT_FALSE((IntRange{int64_t{INT32_MIN} - 1, 0}).narrow());
}

}  // namespace
}  // namespace heddle::emit::cuda
