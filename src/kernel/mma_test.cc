#include "kernel/mma.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/interp.h"
#include "kernel/scalar.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::kernel {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

uint64_t small_number(Type type, uint32_t& seed) {
  seed = seed * 1664525 + 1013904223;
  auto value = static_cast<int>(seed >> 24) % 17 - (tensor::is_unsigned_integer(type) ? 0 : 8);
  if (tensor::is_float(type)) return tensor::float_to_bits(type, value * 0.25);
  return static_cast<uint64_t>(
      int64_t{std::max(value, tensor::is_unsigned_integer(type) ? 0 : value)});
}

double number(Type type, uint64_t bits) {
  return tensor::is_float(type) ? tensor::float_from_bits(type, bits)
                                : static_cast<double>(static_cast<int64_t>(bits));
}

// Scatters matrices over lanes by the maps, runs the instruction, and compares with the nest.
TEST(MmaExecution, IsTheNestOfEachRow) {
  uint32_t seed = 1;
  for (const MmaDescriptor& mma : mma_table()) {
    int rd = mma.map_d.registers(), ra = mma.map_a.registers(), rb = mma.map_b.registers();
    std::vector<uint64_t> a(static_cast<size_t>(mma.lanes * ra)),
        b(static_cast<size_t>(mma.lanes * rb));
    std::vector<uint64_t> c(static_cast<size_t>(mma.lanes * rd)), d(c.size());
    auto cell = [](int s, int i, int j) { return (s * 64 + i) * 64 + j; };
    std::vector<double> ma(64 * 64 * 16), mb(ma.size()), mc(ma.size());
    auto fill = [&](std::vector<uint64_t>& values, std::vector<double>& matrix, const MmaMap& map,
                    Type type) {
      for (int lane = 0; lane < mma.lanes; ++lane) {
        for (int r = 0; r < map.registers(); ++r) {
          uint64_t bits = small_number(type, seed);
          MmaPlace at = map.at(lane, r);
          values[static_cast<size_t>(lane * map.registers() + r)] = bits;
          matrix[static_cast<size_t>(cell(at.batch, at.row, at.column))] = number(type, bits);
        }
      }
    };
    fill(a, ma, mma.map_a, mma.a);
    fill(b, mb, mma.map_b, mma.b);
    fill(c, mc, mma.map_d, mma.d);
    execute_mma(mma, d.data(), a.data(), b.data(), c.data());
    for (int lane = 0; lane < mma.lanes; ++lane) {
      for (int r = 0; r < rd; ++r) {
        MmaPlace at = mma.map_d.at(lane, r);
        double want = mc[static_cast<size_t>(cell(at.batch, at.row, at.column))];
        for (int k = 0; k < mma.k; ++k) {
          want += ma[static_cast<size_t>(cell(at.batch, at.row, k))] *
                  mb[static_cast<size_t>(cell(at.batch, k, at.column))];
        }
        EXPECT_EQ(number(mma.d, d[static_cast<size_t>(lane * rd + r)]), want) << mma.name;
      }
    }
  }
}

// The element that PTX and the Intel manual name for some lane and register.
TEST(MmaExecution, KnownPlaces) {
  const MmaDescriptor& f16 = *find_mma("sm_80_m16n8k16_f16_f32");
  auto place = [](MmaPlace at) { return std::pair(at.row, at.column); };
  EXPECT_EQ(place(f16.map_a.at(5, 0)), std::pair(1, 2));
  EXPECT_EQ(place(f16.map_a.at(5, 3)), std::pair(9, 3));
  EXPECT_EQ(place(f16.map_a.at(31, 7)), std::pair(15, 15));
  EXPECT_EQ(place(f16.map_b.at(5, 2)), std::pair(10, 1));
  EXPECT_EQ(place(f16.map_d.at(5, 2)), std::pair(9, 2));
  const MmaDescriptor& tf32 = *find_mma("sm_80_m16n8k8_tf32_f32");
  EXPECT_EQ(place(tf32.map_a.at(6, 2)), std::pair(1, 6));
  EXPECT_EQ(place(tf32.map_b.at(6, 1)), std::pair(6, 1));
  const MmaDescriptor& s8 = *find_mma("sm_80_m16n8k32_s8_s32");
  EXPECT_EQ(place(s8.map_a.at(6, 13)), std::pair(9, 25));
  EXPECT_EQ(place(s8.map_b.at(6, 5)), std::pair(25, 1));
}

TEST(MmaExecution, NumericsOfTheRows) {
  const MmaDescriptor& tf32 = *find_mma("sm_80_m16n8k8_tf32_f32");
  uint64_t one = tensor::float_to_bits(Type::f32, 1),
           more = tensor::float_to_bits(Type::f32, 1 + 0x1p-11);
  std::vector<uint64_t> a(128, more), b(64, one), c(128, 0), d(128);
  execute_mma(tf32, d.data(), a.data(), b.data(), c.data());
  EXPECT_EQ(tensor::float_from_bits(Type::f32, d[0]), 8);  // the low bits are dropped
  // Words: the first element in the lowest bits; sums wrap.
  const MmaDescriptor& dpbusd = *find_mma("dpbusd");
  EXPECT_EQ(execute_dot(dpbusd, 0x01020304, 0x80017f02, 10),
            static_cast<uint64_t>(int64_t{10 + 4 * 2 + 3 * 127 + 2 * 1 - 128}));
  EXPECT_EQ(static_cast<int64_t>(execute_dot(dpbusd, 0xffffffff, 0x7f7f7f7f, 0x7fffffff)),
            int64_t{0x7fffffff} + 4 * 255 * 127 - (int64_t{1} << 32));
}

// An 8-bit product as a kernel: y[16] = sum over 8 of a[k] * b[k,n], b packed by four.
TEST(MmaExecution, InAKernel) {
  auto kernel = parse_kernel(R"(heddle.kernel 1
kernel dots {
  buffer a: u32[2] global in
  buffer b: u32[2,16] global in
  buffer y: s32[16] global inout
  phase {
    group {
      serial k 2 {
        vector n 16 lanes 16 { y[n] = dot(a[k], b[k, n], y[n], dpbusd) }
      }
    }
  }
})");
  ASSERT_TRUE(kernel) << kernel.error().message;
  ASSERT_TRUE(verify(*kernel)) << verify(*kernel).error().message;
  EXPECT_THAT(to_string(*kernel), HasSubstr("dot(a[k], b[k, n], y[n], dpbusd)"));
  std::vector<uint8_t> a = {1, 2, 3, 4, 250, 6, 7, 8};
  std::vector<int8_t> b(128);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<int8_t>(i * 37);
  std::vector<int32_t> y(16);
  InterpReport report = interpret(*kernel, {a.data(), b.data(), y.data()});
  EXPECT_THAT(report.faults, IsEmpty());
  for (size_t n = 0; n < 16; ++n) {
    int want = 0;
    for (size_t k = 0; k < 8; ++k) want += a[k] * b[k / 4 * 64 + n * 4 + k % 4];
    EXPECT_EQ(y[n], want);
  }
}

}  // namespace
}  // namespace heddle::kernel
