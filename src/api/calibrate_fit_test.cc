#include "api/calibrate_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/rates.h"

namespace heddle::api {
namespace {

TEST(CalibrateFit, FiguresHaveThreeDigits) {
  EXPECT_DOUBLE_EQ(three_digits(1234.56), 1230);
  EXPECT_DOUBLE_EQ(three_digits(0.0123456), 0.0123);
  EXPECT_DOUBLE_EQ(three_digits(9.996), 10);
  EXPECT_DOUBLE_EQ(three_digits(100), 100);
  EXPECT_EQ(three_digits(0), 0);
  EXPECT_EQ(three_digits(-3), 0);
}

// 8 kernels in 700 ns, 72 in 4,540: 3,840 for 64 more.
TEST(CalibrateFit, ACommandIsWhatMoreOfThemCost) {
  EXPECT_DOUBLE_EQ(command_ns(700, 4540, 64), 60);
  EXPECT_EQ(command_ns(700, 690, 64), 1) << "a disturbed measurement gives no negative time";
}

// 16 kernels: 160 us on one core are 80 us on two; 88 were measured: half a microsecond per kernel.
TEST(CalibrateFit, AForkIsWhatTheCoresCostBeyondTheirWork) {
  EXPECT_DOUBLE_EQ(fork_ns(160e3, 88e3, 16, 2), 500);
  EXPECT_DOUBLE_EQ(fork_ns(160e3, 56e3, 16, 4), 1000);
  EXPECT_EQ(fork_ns(160e3, 70e3, 16, 2), 50);
  EXPECT_EQ(fork_ns(160e3, 16e6, 16, 2), 50000);
}

TEST(CalibrateFit, ACopyReadsAndWrites) {
  EXPECT_DOUBLE_EQ(copy_bytes_per_ns(1000, 150, 50), 80);  // 4,000 bytes each way in 100 ns
  EXPECT_DOUBLE_EQ(copy_bytes_per_ns(64, 40, 50), 512) << "at least a nanosecond";
}

// Copies and sums on a machine with 8 MiB, while the target states 32.
TEST(CalibrateFit, ASharedCacheIsAsLargeAsCopiesSay) {
  target::Target target;
  target.caches = {{32 << 10, 1, 160}, {1 << 20, 1, 100}, {8 << 20, 2, 90}};
  target.memory_bandwidth_bytes_per_ns = 40;
  target.memory_read_bytes_per_ns = 20;
  std::vector<TransferTime> times;
  for (const int64_t bytes : {16 << 20, 8 << 20, 4 << 20, 2 << 20}) {
    const auto size = static_cast<double>(bytes);
    const double read = cost::transfer_ns(cost::Transition::read, size, 1, target);
    const double moved = cost::transfer_ns(cost::Transition::memory_reg, size, 1, target);
    times.push_back({bytes, true, std::max(read, 2 * moved)});
    times.push_back({bytes, false, read});
  }
  target.caches.back().bytes = 32 << 20;
  fit_last_cache(&target, times, 1 << 20);
  EXPECT_EQ(target.caches.back().bytes, 8 << 20);
  target.caches.back().bytes = 32 << 20;
  fit_last_cache(&target, times, 4 << 20);
  EXPECT_EQ(target.caches.back().bytes, 16 << 20) << "arrays of 4 MiB are known to fit";
  fit_last_cache(&target, {}, 1 << 20);
  EXPECT_EQ(target.caches.back().bytes, 16 << 20);
}

TEST(CalibrateFit, AnOperatorIsWhatItCostsMoreThanAnAddition) {
  target::Target target;
  target.cycles = {{"add", 0.5}, {"exp", 8}, {"exp_fast", 4}, {"max", 1.5}};
  set_cycles(&target, "exp", 13.5, 2);
  EXPECT_DOUBLE_EQ(target.cycles["exp"], 12);
  EXPECT_DOUBLE_EQ(target.cycles["exp_fast"], 6) << "half of it, as before";
  set_cycles(&target, "max", 1.9, 2);
  EXPECT_DOUBLE_EQ(target.cycles["max"], 0.5) << "nothing takes less than half a cycle";
  set_cycles(&target, "tan", 22, 2);
  EXPECT_DOUBLE_EQ(target.cycles["tan"], 20.5) << "an operator without a row";
  EXPECT_EQ(target.cycles.count("tan_fast"), 0u);
  EXPECT_DOUBLE_EQ(target.cycles["add"], 0.5);
}

TEST(CalibrateFit, RatesOfProductsAreRelativeToF32) {
  target::Target target;
  target.simd_bits = 512;
  target.clock_ghz = 3.7;
  target.features = {"avx512bf16", "avx512f", "avx512vnni"};
  std::vector<std::string> names;
  for (const MeasuredProduct& product : measured_products(target)) names.push_back(product.name);
  EXPECT_THAT(names, testing::ElementsAre("f32", "f64", "s8", "s16", "bf16"));
  set_rates(&target, {{"f32", 110}, {"bf16", 220}, {"s8", 430}});
  EXPECT_EQ(target.fma_per_cycle, 1) << "2 x 3.7 x 16 are 118";
  EXPECT_DOUBLE_EQ(target.mac_rate["bf16"], 2);
  EXPECT_DOUBLE_EQ(target.mac_rate["s8"], 3.91);
  EXPECT_DOUBLE_EQ(target.mac_rate["u8"], 3.91);
  set_rates(&target, {{"f32", 200}});
  EXPECT_EQ(target.fma_per_cycle, 2);
  set_rates(&target, {{"f32", 20}});
  EXPECT_EQ(target.fma_per_cycle, 1) << "a disturbed measurement";
}

// Errors of factors 2 and 1/2 are equally large, and do not cancel.
TEST(CalibrateFit, ErrorsAreOfRatios) {
  const std::vector<CalibrateFit> fits{{"a", 200, 100}, {"b", 100, 200}, {"c", 300, 300}};
  const FitErrors errors = errors_of(fits);
  EXPECT_NEAR(errors.geomean, std::pow(2, 2.0 / 3) - 1, 1e-12);
  EXPECT_NEAR(errors.worst, 1, 1e-12);
  EXPECT_EQ(errors_of({}).geomean, 0);
  EXPECT_EQ(errors_of({}).worst, 0);
}

}  // namespace
}  // namespace heddle::api
