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

// All numbers of types of few bits, some numbers of the others.
uint64_t small_number(Type type, uint32_t& seed) {
  seed = seed * 1664525 + 1013904223;
  const auto drawn = static_cast<int>(seed >> 24);
  if (tensor::type_bits(type) < 8) return canonical_bits(type, static_cast<uint64_t>(drawn));
  auto value = drawn % 17 - (tensor::is_unsigned_integer(type) ? 0 : 8);
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
    auto cell = [](int s, int i, int j) { return (s * 256 + i) * 256 + j; };
    std::vector<double> ma(static_cast<size_t>(mma.batch) * 256 * 256), mb(ma.size()),
        mc(ma.size());
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
          const double x = ma[static_cast<size_t>(cell(at.batch, at.row, k))],
                       y = mb[static_cast<size_t>(cell(at.batch, k, at.column))];
          want += mma.numerics == MmaNumerics::differs ? (x != y ? 1 : 0) : x * y;
        }
        EXPECT_EQ(number(mma.d, d[static_cast<size_t>(lane * rd + r)]), want) << mma.name;
      }
    }
  }
}

// The elements that PTX and the Intel manual give for some lanes and registers.
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
  const MmaDescriptor& s4 = *find_mma("sm_80_m16n8k64_s4_s32");
  EXPECT_EQ(place(s4.map_a.at(6, 10)), std::pair(9, 18));
  EXPECT_EQ(place(s4.map_a.at(6, 21)), std::pair(1, 53));
  EXPECT_EQ(place(s4.map_b.at(6, 9)), std::pair(49, 1));
  for (const char* name : {"sm_80_m16n8k256_u1_s32_and", "sm_80_m16n8k256_u1_s32_xor"}) {
    const MmaDescriptor& u1 = *find_mma(name);
    EXPECT_EQ(place(u1.map_a.at(6, 35)), std::pair(9, 67));
    EXPECT_EQ(place(u1.map_a.at(6, 70)), std::pair(1, 198));
    EXPECT_EQ(place(u1.map_b.at(6, 33)), std::pair(193, 1));
  }
}

// Sums of 64 products of numbers of 4 bits, and of 256 bits, at their ends; they begin with C.
TEST(MmaExecution, FewBitsAtTheirEnds) {
  const auto all = [](const char* name, int64_t a, int64_t b, int64_t c) {
    const MmaDescriptor& mma = *find_mma(name);
    const auto elems = [&](const MmaMap& map, int64_t value) {
      return std::vector<uint64_t>(static_cast<size_t>(mma.lanes * map.registers()),
                                   static_cast<uint64_t>(value));
    };
    auto d = elems(mma.map_d, c);
    const std::vector<uint64_t> before = d;
    execute_mma(mma, d.data(), elems(mma.map_a, a).data(), elems(mma.map_b, b).data(),
                before.data());
    EXPECT_THAT(d, ::testing::Each(d[0])) << name;
    return static_cast<int64_t>(d[0]);
  };
  EXPECT_EQ(all("sm_80_m16n8k64_s4_s32", -8, -8, 5), 64 * 64 + 5);
  EXPECT_EQ(all("sm_80_m16n8k64_s4_s32", -8, 7, 0), -64 * 56);
  EXPECT_EQ(all("sm_80_m16n8k64_s4_s32", 7, 7, INT32_MAX), INT32_MIN + 64 * 49 - 1);
  EXPECT_EQ(all("sm_80_m16n8k64_s4_s32", 0x77, 0x17, 0), 64 * 49);  // the low bits count
  EXPECT_EQ(all("sm_80_m16n8k256_u1_s32_and", 1, 1, -6), 250);
  EXPECT_EQ(all("sm_80_m16n8k256_u1_s32_and", 1, 0, -6), -6);
  EXPECT_EQ(all("sm_80_m16n8k256_u1_s32_xor", 1, 1, 3), 3);
  EXPECT_EQ(all("sm_80_m16n8k256_u1_s32_xor", 1, 0, 3), 259);
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
