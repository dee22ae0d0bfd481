#include <cmath>

#include "interp/random_bits.h"
#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

// The known answers published with the generators' definition (Random123).
TEST(RandomBits, ThreeFryKnownAnswers) {
  using Words = std::array<uint32_t, 2>;
  EXPECT_EQ(three_fry_2x32({0, 0}, {0, 0}), (Words{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(three_fry_2x32({~0u, ~0u}, {~0u, ~0u}), (Words{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(three_fry_2x32({0x243f6a88, 0x85a308d3}, {0x13198a2e, 0x03707344}),
            (Words{0xc4923a9c, 0x483df7a0}));
}

TEST(RandomBits, PhiloxKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox_4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::string generate(const std::string& state, const std::string& bits,
                     const std::string& algorithm) {
  return run_op("rng-bit-generator", "(" + state.substr(0, state.find(' ')) + ", " + bits + ")",
                {state}, "algorithm=" + algorithm);
}

TEST(RngBitGenerator, ThreeFryPairsNeighbours) {
  // Key 0 and counters 0 and 1: 0x6b200159, 0x99ba4efe first.
  auto words0 = three_fry_2x32({0, 0}, {0, 0}), words1 = three_fry_2x32({1, 0}, {0, 0});
  EXPECT_EQ(
      generate("u64[2] {0, 0}", "u32[4]", "rng_three_fry"),
      fmt::format("({{0, 2}}, {{{}, {}, {}, {}}})", words0[0], words0[1], words1[0], words1[1]));
  EXPECT_EQ(generate("u64[2] {0, 0}", "u32[3]", "rng_three_fry"),
            fmt::format("({{0, 2}}, {{{}, {}, {}}})", words0[0], words0[1], words1[0]));
  // For [3,2] the second dimension is the even one.
  EXPECT_EQ(generate("u64[2] {0, 0}", "u32[2,1]", "rng_three_fry"),
            fmt::format("({{0, 1}}, {{ {{{}}}, {{{}}} }})", words0[0], words0[1]));
  EXPECT_EQ(generate("u64[2] {0, 0}", "u8[2]", "rng_three_fry"), "({0, 1}, {89, 254})");
  EXPECT_EQ(generate("u64[2] {0, 0}", "u64[1]", "rng_three_fry"),
            fmt::format("({{0, 1}}, {{{}}})", 0x99ba4efe6b200159u));
}

TEST(RngBitGenerator, PhiloxTakesWordsInTurn) {
  EXPECT_EQ(generate("u64[3] {0, 0, 0}", "u32[2,2]", "rng_philox"),
            fmt::format("({{0, 1, 0}}, {{ {{{}, {}}}, {{{}, {}}} }})", 0x6627e8d5u, 0xe169c58du,
                        0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_EQ(generate("u64[2] {0, 0}", "u64[1]", "rng_default"),
            fmt::format("({{0, 1}}, {{{}}})", 0xe169c58d6627e8d5u));
  // The counter carries into its upper word.
  EXPECT_EQ(generate("u64[3] {0, 18446744073709551615, 7}", "u32[8]", "rng_philox").substr(0, 9),
            "({0, 1, 8");
}

TEST(RngBitGenerator, OtherStatesAreRefused) {
  auto module = module_of(R"(
    s = u64[1] constant({1})
    ROOT r = (u64[1], u32[2]) rng-bit-generator(s), algorithm=rng_default)");
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(unsupported(*module), std::vector<std::string>{"rng-bit-generator (r)"});
  EXPECT_FALSE(evaluate(*module, {}));
}

TEST(Rng, UniformAndNormalAreDeterministic) {
  auto draw = [](const std::string& type, const std::string& a, const std::string& b,
                 const std::string& distribution) {
    return evaluate_text("a = " + type + "[] constant(" + a + ")\nb = " + type + "[] constant(" +
                         b + ")\nROOT r = " + type +
                         "[4000] rng(a, b), distribution=" + distribution);
  };
  auto uniform = draw("f32", "2", "4", "rng_uniform");
  ASSERT_TRUE(uniform);
  EXPECT_EQ(*uniform, *draw("f32", "2", "4", "rng_uniform"));
  double sum = 0;
  for (float x : uniform->values<float>()) {
    EXPECT_TRUE(x >= 2 && x < 4);
    sum += static_cast<double>(x);
  }
  EXPECT_NEAR(sum / 4000, 3, 0.05);

  auto normal = draw("f64", "1", "2", "rng_normal");
  double mean = 0, square = 0;
  for (double x : normal->values<double>()) {
    mean += x / 4000;
    square += x * x / 4000;
  }
  EXPECT_NEAR(mean, 1, 0.15);
  EXPECT_NEAR(std::sqrt(square - mean * mean), 2, 0.15);

  auto integers = draw("s32", "-3", "3", "rng_uniform");
  int64_t low = 0, high = 0;
  for (int32_t x : integers->values<int32_t>()) {
    low = std::min<int64_t>(low, x);
    high = std::max<int64_t>(high, x);
  }
  EXPECT_EQ(low, -3);
  EXPECT_EQ(high, 2);
}

TEST(Rng, StateAdvancesByDelta) {
  EXPECT_EQ(run(R"(
    a = u64[2] rng-get-and-update-state(), delta=5
    b = u64[2] rng-get-and-update-state(), delta=1
    ROOT d = u64[2] subtract(b, a))"),
            "{5, 0}");
}

}  // namespace
}  // namespace heddle::interp
