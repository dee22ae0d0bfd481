// Which kernels become one, and which stay two.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "kernel/interp.h"
#include "kernel/text.h"
#include "kernel/verify.h"
#include "lower/passes.h"

namespace heddle::lower {
namespace {

// Reads a from elements `first` and `first` + 2, b from its start and element 1, c at `place`.
std::string text(int first, int place) {
  std::string a = std::to_string(first), a2 = std::to_string(first + 2), c = std::to_string(place);
  return R"(heddle.kernel 1
kernel k {
  target "host"
  buffer a: f32[64] global in
  buffer b: f32[16] global in
  buffer c: f32[32] global in
  buffer out: f32[8] global out
  phase {
    group grid (t 2) {
      vector l 4 lanes 4 {
        out[t*4 + l] = a[t*8 + )" +
         a + " + l*2] - a[t*8 + " + a2 + R"( + l*2]*b[t*4 + l] + b[1 + l] + c[)" + c + R"(]
      }
    }
  }
}
)";
}

kernel::Kernel parsed(const std::string& text) {
  auto kernel = kernel::parse_kernel(text);
  EXPECT_TRUE(kernel) << kernel.error().message;
  return *kernel;
}

struct Shifted {
  kernel::Kernel kernel;
  std::vector<int64_t> dims;
};

Shifted shifted(const std::string& text) {
  Shifted result{parsed(text), {}};
  Context context;
  context.dims = &result.dims;
  const Result<bool> changed = shift_reads(result.kernel, context);
  EXPECT_EQ(*changed, !result.dims.empty());
  return result;
}

std::vector<float> run(const kernel::Kernel& kernel, const std::vector<int64_t>& dims) {
  std::vector<float> a(64), b(16), c(32), out(8);
  std::iota(a.begin(), a.end(), 1);
  std::iota(b.begin(), b.end(), 100);
  std::iota(c.begin(), c.end(), 1000);
  auto report = kernel::interpret(kernel, {a.data(), b.data(), c.data(), out.data()}, dims);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0];
  return out;
}

TEST(ShiftReads, AlikeKernelsBecomeOne) {
  const Shifted first = shifted(text(3, 5)), second = shifted(text(40, 31));
  EXPECT_EQ(first.dims, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(second.dims, (std::vector<int64_t>{40, 31}));
  EXPECT_EQ(kernel::to_string(first.kernel), kernel::to_string(second.kernel));
  ASSERT_TRUE(kernel::verify(first.kernel)) << kernel::verify(first.kernel).error().message;
  EXPECT_EQ(run(first.kernel, first.dims), run(parsed(text(3, 5)), {}));
  EXPECT_EQ(run(first.kernel, second.dims), run(parsed(text(40, 31)), {}));
}

TEST(ShiftReads, OtherDistancesStayApart) {
  std::string wider = text(3, 5);
  wider.replace(wider.find(" + 5 + l*2"), 10, " + 6 + l*2");
  EXPECT_NE(kernel::to_string(shifted(text(3, 5)).kernel),
            kernel::to_string(shifted(wider).kernel));
}

}  // namespace
}  // namespace heddle::lower
