// Matrix instructions on tiles, each with loads, sums from memory or from zero, and stores: the
// results are the interpreter's. On a processor without tiles a stand-in executes the code.
#include <gtest/gtest.h>

#include <cmath>

#include "emit/llvm/test_code.h"
#include "kernel/interp.h"
#include "kernel/mma.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::testing {
void stand_in_for_tiles();  // tests/tiles/tiles_stand_in.h
}  // namespace heddle::testing

namespace heddle::emit {
namespace {

using tensor::Type;

// y[2 blocks of 16, 32] += a[32, k] * b[k / word, 32 words], two steps of k; the second block of
// rows starts at zero.
kernel::Kernel product(const kernel::MmaDescriptor& mma) {
  const int word = 32 / tensor::type_bits(mma.a), k = 2 * mma.k;
  auto kernel = kernel::parse_kernel(fmt::format(
      R"(heddle.kernel 1
kernel k {{
  buffer a: {0}[{6}] global in
  buffer b: u32[{7}] global in
  buffer y: {2}[1024] global inout
  buffer d: {2}[2,2,256] fragment lanes 1
  buffer fa: {0}[2,{3}] fragment lanes 1
  buffer fb: {1}[2,{3}] fragment lanes 1
  phase {{
    group {{
      fragment_load d[0, 0] from y[0] rows 16 stride 32
      fragment_load d[0, 1] from y[16] rows 16 stride 32
      fragment_clear d[1, 0]
      fragment_clear d[1, 1]
      serial s 2 {{
        unrolled i 2 {{
          fragment_load fa[i] from a[s * {4} + i * {5}] rows 16 stride {8}
          fragment_load fb[i] from b[s * 512 + i * 16] rows 16 stride 32
        }}
        unrolled m 2 {{
          unrolled n 2 {{ mma {9} d[m, n], fa[m], fb[n], d[m, n] }}
        }}
      }}
      unrolled r 2 {{
        unrolled c 2 {{ fragment_store y[r * 512 + c * 16] from d[r, c] rows 16 stride 32 }}
      }}
    }}
  }}
}}
)",
      tensor::type_name(mma.a), tensor::type_name(mma.b), tensor::type_name(mma.d), 16 * mma.k,
      mma.k, 16 * k, 32 * k, k / word * 32, k, mma.name));
  EXPECT_TRUE(kernel.has_value()) << (kernel ? "" : kernel.error().message);
  EXPECT_TRUE(kernel::verify(*kernel)) << kernel::verify(*kernel).error().message;
  return std::move(*kernel);
}

TEST(Fragments, EveryInstruction) {
  testing::stand_in_for_tiles();
  const target::Target target = *target::find_target("spr_amx");
  // The code around the tile instructions is compiled for AVX-512, which has no stand-in.
  if (!target::host_target().has("avx512f")) GTEST_SKIP() << "this processor has no AVX-512";
  for (const kernel::MmaDescriptor& mma : kernel::mma_table()) {
    if (!mma.is_tile()) continue;
    const kernel::Kernel kernel = product(mma);
    auto code = TestCode::make(kernel, target);
    ASSERT_TRUE(code.has_value()) << code.error().message;
    std::vector<uint32_t> a = test_words(mma.a, 1024, 1), b = test_words(mma.b, 1024, 2);
    std::vector<uint32_t> got = test_words(mma.d, 1024, 3), want = got;
    (*code)->run({a.data(), b.data(), got.data()}, {});
    EXPECT_TRUE(kernel::interpret(kernel, {a.data(), b.data(), want.data()}).faults.empty());
    for (size_t i = 0; i < got.size(); ++i) {
      if (mma.d != Type::f32) {
        ASSERT_EQ(got[i], want[i]) << mma.name << " " << i;
        continue;
      }
      const double x = tensor::float_from_bits(mma.d, got[i]);
      const double y = tensor::float_from_bits(mma.d, want[i]);
      ASSERT_NEAR(x, y, 1e-5 * (1 + std::abs(y))) << mma.name << " " << i;
    }
  }
}

TEST(Fragments, AreOfTilesThatTheTargetHas) {
  const kernel::Kernel kernel = product(*kernel::find_mma("tdpbusd"));
  auto code = TestCode::make(kernel, *target::find_target("spr"));
  ASSERT_FALSE(code.has_value());
  EXPECT_NE(code.error().message.find("no tiles"), std::string::npos) << code.error().message;
}

}  // namespace
}  // namespace heddle::emit
