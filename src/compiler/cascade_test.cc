// Sums of exponentials of rows that do not fit the second-level cache (schedule/cascade.cc), and
// quotients by a value of the row: tests of the generated kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::schedule {
namespace {

using compiler::FusionCheck;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

FusionCheck run(const std::string& text, const char* name = "icelake") {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  target::Target target = *target::find_target(name);
  target.caches[0].bytes = 4096;
  target.caches[1].bytes = 16384;
  target.cores = 2;
  FusionCheck checked = compiler::check_fusion(**module, target, 5, 4096);
  EXPECT_EQ(checked.failure, "") << checked.text;
  return checked;
}

constexpr const char* kHead = R"(HloModule m
maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
)";

// log-sum-exp of 24 rows.
std::string log_sum_exp(int width) {
  const std::string box = fmt::format("f32[24,{}]", width);
  return kHead + fmt::format(R"(
  t = {0} parameter(0)
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[24] reduce(t, lowest), dimensions={{1}}, to_apply=maximum
  tops = {0} broadcast(top), dimensions={{0}}
  shifted = {0} subtract(t, tops)
  powers = {0} exponential(shifted)
  total = f32[24] reduce(powers, zero), dimensions={{1}}, to_apply=add
  log_total = f32[24] log(total)
  ROOT y = f32[24] add(log_total, top)
}})",
                             box);
}

TEST(CascadeTest, ALongRowIsReadOnce) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    const FusionCheck ran = run(log_sum_exp(4096), target);
    EXPECT_THAT(ran.text, HasSubstr("for s0 serial")) << ran.text;
    EXPECT_THAT(ran.placed.graph.rewrites, Contains(HasSubstr("summed in tiles")));
  }
}

// Row r has logits from column 192 r on: whole strips are masked, and the last rows entirely, which
// give NaN as they do without strips.
TEST(CascadeTest, StripsThatAreMaskedWeighNothing) {
  const FusionCheck ran = run(log_sum_exp(4096));
  std::vector<float> x(24 * 4096, -INFINITY), y(24, 0);
  for (size_t r = 0; r < 24; ++r)
    for (size_t c = 192 * r; c < 4096; ++c) x[r * 4096 + c] = std::sin(static_cast<float>(c)) * 20;
  const kernel::InterpReport report = kernel::interpret(ran.kernel, {x.data(), y.data()}, {}, 1);
  EXPECT_THAT(report.faults, testing::IsEmpty());
  for (size_t r = 0; r < 24; ++r) {
    double sum = 0;
    for (size_t c = 192 * r; c < 4096; ++c) sum += std::exp(static_cast<double>(x[r * 4096 + c]));
    if (sum > 0)
      EXPECT_NEAR(y[r], std::log(sum), 1e-4) << r;
    else
      EXPECT_TRUE(std::isnan(y[r])) << r;
  }
}

TEST(CascadeTest, RowsThatStayInTheCacheAndRowsWithoutStripsAreLeft) {
  EXPECT_THAT(run(log_sum_exp(384)).text, Not(HasSubstr("for s0")));
  EXPECT_THAT(run(log_sum_exp(4093)).text, Not(HasSubstr("for s0")));
}

// Divisors of ordinary size, of a quarter below the least normal number and up to infinity, and 0.
TEST(CascadeTest, QuotientsByAValueOfTheRow) {
  for (const char* size : {"1", "1e-19", "3e-39", "1e19", "2e38", "0"}) {
    const std::string text = kHead + fmt::format(R"(
  x = f32[24,96] parameter(0)
  d = f32[24] parameter(1)
  size = f32[] constant({})
  sizes = f32[24] broadcast(size), dimensions={{}}
  divisor = f32[24] multiply(d, sizes)
  divisors = f32[24,96] broadcast(divisor), dimensions={{0}}
  ROOT y = f32[24,96] divide(x, divisors)
}})",
                                                 size);
    for (const char* target : {"icelake", "avx2", "portable"}) {
      const FusionCheck ran = run(text, target);
      EXPECT_THAT(ran.placed.graph.rewrites, Contains(HasSubstr("division by one value per row")));
    }
  }
}

}  // namespace
}  // namespace heddle::schedule
