// The kernels of testdata/ against plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>

#include "kernel/interp.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::kernel {
namespace {

using ::testing::IsEmpty;

Kernel example(const std::string& name) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/src/kernel/testdata/" + name + ".kernel");
  std::stringstream text;
  text << file.rdbuf();
  auto kernel = parse_kernel(text.str());
  EXPECT_TRUE(kernel) << kernel.error().message;
  if (!kernel) return {};
  Status status = verify(*kernel);
  EXPECT_TRUE(status) << status.error().message;
  std::string printed = to_string(*kernel);
  EXPECT_EQ(to_string(*parse_kernel(printed)), printed);
  return *kernel;
}

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> result(count);
  for (float& value : result) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return result;
}

TEST(Examples, Gemm) {
  Kernel kernel = example("gemm_14x32");
  std::vector<float> a = numbers(112 * 256, 1), b = numbers(256 * 64, 2), c = numbers(112 * 64, 3);
  std::vector<float> packed(b.size()), want = c;
  for (size_t k = 0; k < 256; ++k) {
    for (size_t n = 0; n < 64; ++n) packed[n / 32 * 8192 + k * 32 + n % 32] = b[k * 64 + n];
  }
  for (size_t m = 0; m < 112; ++m) {
    for (size_t n = 0; n < 64; ++n) {
      for (size_t k = 0; k < 256; ++k)
        want[m * 64 + n] = std::fma(a[m * 256 + k], b[k * 64 + n], want[m * 64 + n]);
    }
  }
  InterpReport report = interpret(kernel, {a.data(), packed.data(), c.data()}, {}, 7);
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(c, want);  // the same fused operations in the same order
  EXPECT_EQ(report.op_counts[static_cast<size_t>(Op::fma)], 112 * 64 * 256);
  EXPECT_EQ(report.buffers[0].loads, 112 * 256 * 2);  // once a panel
  EXPECT_EQ(report.buffers[2].max_stores_per_elem, 1);
  EXPECT_EQ(report.prefetches, 16 * 256);
  EXPECT_EQ(task_count(kernel, kernel.phases[0], {}), 16);
}

TEST(Examples, Softmax) {
  Kernel kernel = example("softmax");
  for (size_t rows : {1u, 4u, 9u}) {
    std::vector<float> x = numbers(rows * 77, 5), y(x.size());
    InterpReport report = interpret(kernel, {x.data(), y.data()}, {static_cast<int64_t>(rows)}, 1);
    EXPECT_THAT(report.faults, IsEmpty());
    for (size_t r = 0; r < rows; ++r) {
      double most = -1e30, sum = 0;
      for (size_t c = 0; c < 77; ++c) most = std::max<double>(most, x[r * 77 + c]);
      for (size_t c = 0; c < 77; ++c) sum += std::exp(x[r * 77 + c] - most);
      for (size_t c = 0; c < 77; ++c)
        EXPECT_NEAR(y[r * 77 + c], std::exp(x[r * 77 + c] - most) / sum, 1e-8);
    }
    EXPECT_EQ(report.op_counts[static_cast<size_t>(Op::exp_fast)], static_cast<int64_t>(rows) * 77);
    EXPECT_EQ(report.buffers[0].max_loads_per_elem, 2);
  }
}

TEST(Examples, LayerNorm) {
  Kernel kernel = example("layer_norm");
  std::vector<float> x = numbers(12 * 200, 6), gamma = numbers(200, 7), beta = numbers(200, 8),
                     y(x.size());
  InterpReport report = interpret(kernel, {x.data(), gamma.data(), beta.data(), y.data()});
  EXPECT_THAT(report.faults, IsEmpty());
  for (size_t r = 0; r < 12; ++r) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < 200; ++c) mean += x[r * 200 + c] / 200.0;
    for (size_t c = 0; c < 200; ++c) variance += std::pow(x[r * 200 + c] - mean, 2) / 200.0;
    for (size_t c = 0; c < 200; ++c) {
      double want = (x[r * 200 + c] - mean) / std::sqrt(variance + 1e-5) * gamma[c] + beta[c];
      EXPECT_NEAR(y[r * 200 + c], want, 1e-6);
    }
  }
}

// The interpreter finds errors that are put into a schedule by hand.
TEST(Examples, DamageIsSeen) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/src/kernel/testdata/layer_norm.kernel");
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  struct Change {
    const char *from, *to, *fault;
  };
  for (const Change& change : {Change{"vector w1 8", "vector w1 7", "nobody has written"},
                               Change{"vector w1 8", "vector w1 9", "out of bounds"},
                               Change{"grid (row 12)", "grid (row 11)", "never stored"},
                               Change{"grid (row 12)", "grid (row 13)", "out of bounds"},
                               Change{"vector w4 200", "vector w4 199", "never stored"},
                               Change{"          v[z] = 0:f32\n", "", "nobody has written"},
                               Change{"y[row, w4] =", "y[0, w4] =", "another task"}}) {
    std::string damaged = text;
    size_t at = damaged.find(change.from);
    ASSERT_NE(at, std::string::npos);
    damaged.replace(at, std::string(change.from).size(), change.to);
    auto kernel = parse_kernel(damaged);
    ASSERT_TRUE(kernel) << kernel.error().message;
    std::vector<float> x = numbers(12 * 200, 6), gamma = numbers(200, 7), beta = numbers(200, 8),
                       y(x.size());
    InterpReport report = interpret(*kernel, {x.data(), gamma.data(), beta.data(), y.data()});
    ASSERT_FALSE(report.faults.empty()) << change.from << " -> " << change.to;
    EXPECT_NE(report.faults[0].find(change.fault), std::string::npos) << report.faults[0];
  }
}

}  // namespace
}  // namespace heddle::kernel
