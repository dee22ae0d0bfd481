// Every instruction of one lane (kernel/mma.def), in every number of lanes: the results are the
// interpreter's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "emit/llvm/test_code.h"
#include "kernel/interp.h"
#include "kernel/mma.h"
#include "kernel/text.h"
#include "tensor/type.h"

namespace heddle::emit {
namespace {

using tensor::Type;

constexpr size_t kWords = 64;

kernel::Kernel dots(const kernel::MmaDescriptor& mma, int lanes) {
  auto kernel = kernel::parse_kernel(fmt::format(
      "heddle.kernel 1\nkernel k {{ buffer a: u32[64] global in buffer b: u32[64] global in "
      "buffer y: {}[65] global inout phase {{ group {{ vector i 60 lanes {} {{ "
      "y[i] = dot(a[i], b[i], dot(a[3], b[i], y[i], {}), {}) }} "
      "y[64] = dot(a[5], b[6], y[64], {}) }} }} }}\n",
      tensor::type_name(mma.d), lanes, mma.name, mma.name, mma.name));
  EXPECT_TRUE(kernel.has_value()) << (kernel ? "" : kernel.error().message);
  return std::move(*kernel);
}

// The plain AVX2 and AVX-512 targets, and each with one more feature.
std::vector<target::Target> targets_for(const kernel::MmaDescriptor& mma) {
  std::vector<target::Target> result;
  for (const char* name : {"avx2", "icelake"}) {
    const target::Target plain = *target::find_target(name);
    result.push_back(plain);
    for (const std::string_view feature : {"avx512vnni", "avxvnni", "avx512bf16"}) {
      if (plain.has(feature) || mma.features.find(feature) == std::string_view::npos) continue;
      if (plain.simd_bits < 512 && feature.starts_with("avx512")) continue;
      result.push_back(plain);
      std::vector<std::string>& features = result.back().features;
      features.insert(std::ranges::upper_bound(features, std::string(feature)),
                      std::string(feature));
    }
  }
  return result;
}

bool runs_here(const target::Target& target) {
  static const target::Target kHost = target::host_target();
  return std::ranges::all_of(target.features,
                             [](const std::string& feature) { return kHost.has(feature); });
}

void expect_near(Type type, uint32_t got, uint32_t want, const std::string& where) {
  if (type != Type::f32) {
    EXPECT_EQ(got, want) << where;
    return;
  }
  const double x = tensor::float_from_bits(type, got), y = tensor::float_from_bits(type, want);
  EXPECT_NEAR(x, y, 1e-6 * (1 + std::abs(y))) << where;
}

TEST(Dot, EveryInstruction) {
  for (const kernel::MmaDescriptor& mma : kernel::mma_table()) {
    if (!mma.is_dot()) continue;
    for (const target::Target& target : targets_for(mma)) {
      const bool is_narrow = target.simd_bits < 512;
      for (int lanes : {4, 8, 16}) {
        if (is_narrow && lanes == 16) continue;
        const kernel::Kernel kernel = dots(mma, lanes);
        const std::string where = fmt::format("{} {} lanes", mma.name, lanes);
        if (!target.has_any(mma.features)) {
          auto code = TestCode::make(kernel, target);
          ASSERT_FALSE(code.has_value()) << where;
          EXPECT_NE(code.error().message.find("not one of this CPU"), std::string::npos);
          continue;
        }
        if (!runs_here(target)) {
          std::printf("[ SKIPPED  ] %s: this processor does not have it\n", where.c_str());
          continue;
        }
        auto code = TestCode::make(kernel, target);
        ASSERT_TRUE(code.has_value()) << where << code.error().message;
        std::vector<uint32_t> a = test_words(mma.a, kWords, 1), b = test_words(mma.b, kWords, 2),
                              got(65), want(65);
        (*code)->run({a.data(), b.data(), got.data()}, {});
        EXPECT_TRUE(kernel::interpret(kernel, {a.data(), b.data(), want.data()}).faults.empty());
        EXPECT_NE(got, std::vector<uint32_t>(65));
        for (size_t i = 0; i < got.size(); ++i) expect_near(mma.d, got[i], want[i], where);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::emit
