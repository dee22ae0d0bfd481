#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

std::string convert(const std::string& x, const std::string& to) {
  const size_t bracket = x.find('[');
  return run_op("convert", to + x.substr(bracket, x.find(' ') - bracket), {x});
}

TEST(Convert, FloatToIntegerTruncatesAndClamps) {
  EXPECT_EQ(convert("f32[6] {1.9, -1.9, 300, -300, nan, inf}", "s8"), "{1, -1, 127, -128, 0, 127}");
  EXPECT_EQ(convert("f32[4] {-1, 255.9, 256, -0.5}", "u8"), "{0, 255, 255, 0}");
  EXPECT_EQ(convert("f32[2] {1e20, -1e20}", "s64"), "{9223372036854775807, -9223372036854775808}");
  EXPECT_EQ(convert("f64[2] {1e20, 18446744073709549568}", "u64"),
            "{18446744073709551615, 18446744073709549568}");
  EXPECT_EQ(convert("bf16[3] {9, -9, 3.5}", "s4"), "{7, -8, 3}");
  EXPECT_EQ(convert("f32[3] {0, -0, nan}", "pred"), "{0, 0, 1}");
}

TEST(Convert, IntegerToFloatRoundsOnce) {
  EXPECT_EQ(convert("s32[2] {16777217, 16777219}", "f32"), "{16777216, 16777220}");
  // One more than the midpoint between 2^54 and the next f32: through f64 it would be the midpoint.
  EXPECT_EQ(convert("s64[1] {18014399583223809}", "f32"), "{1.80144e+16}");
  EXPECT_EQ(convert("u64[1] {18446744073709551615}", "f64"), "{18446744073709551616}");
  EXPECT_EQ(convert("s32[1] {65519}", "f16"), "{65500}");
  EXPECT_EQ(convert("s32[1] {65520}", "f16"), "{inf}");
  EXPECT_EQ(convert("pred[2] {0, 1}", "f32"), "{0, 1}");
}

TEST(Convert, BetweenIntegersWraps) {
  EXPECT_EQ(convert("s32[3] {300, -1, 128}", "s8"), "{44, -1, -128}");
  EXPECT_EQ(convert("s8[1] {-1}", "u32"), "{4294967295}");
  EXPECT_EQ(convert("u8[2] {255, 9}", "s4"), "{-1, -7}");
  EXPECT_EQ(convert("s4[2] {-1, 3}", "s32"), "{-1, 3}");
  EXPECT_EQ(convert("u4[1] {15}", "s32"), "{15}");
  EXPECT_EQ(convert("s32[3] {256, 0, -7}", "pred"), "{1, 0, 1}");
}

TEST(Convert, BetweenFloats) {
  EXPECT_EQ(convert("f32[3] {1.00390625, 1.01171875, 3.4028235e38}", "bf16"), "{1, 1.016, inf}");
  EXPECT_EQ(convert("f64[1] {1e300}", "f32"), "{inf}");
  EXPECT_EQ(convert("f32[3] {1000, 464, 465}", "f8e4m3fn"), "{nan, 450, nan}");
  EXPECT_EQ(convert("f32[2] {61440, 61439}", "f8e5m2"), "{inf, 60000}");
  EXPECT_EQ(convert("f8e4m3fn[2] {448, -0.001953125}", "f32"), "{448, -0.001953125}");
  EXPECT_EQ(convert("f32[3] {5, 7, -0.25}", "f4e2m1fn"), "{4, 6, -0}");
}

TEST(Convert, Complex) {
  EXPECT_EQ(convert("f32[1] {2}", "c64"), "{(2, 0)}");
  EXPECT_EQ(convert("c64[1] {(1, 2)}", "c128"), "{(1, 2)}");
  EXPECT_EQ(convert("s32[1] {-7}", "c64"), "{(-7, 0)}");
}

TEST(BitcastConvert, SameWidth) {
  EXPECT_EQ(run_op("bitcast-convert", "u8[2]", {"pred[2] {1, 0}"}), "{1, 0}");
  EXPECT_EQ(run_op("bitcast-convert", "pred[2]", {"s8[2] {0, -2}"}), "{0, 1}");
  EXPECT_EQ(run_op("bitcast-convert", "u32[2]", {"f32[2] {1, -0}"}), "{1065353216, 2147483648}");
  EXPECT_EQ(run_op("bitcast-convert", "f32[1]", {"u32[1] {2139095040}"}), "{inf}");
  EXPECT_EQ(run_op("bitcast-convert", "u4[2]", {"s4[2] {-1, 7}"}), "{15, 7}");
  EXPECT_EQ(run_op("bitcast-convert", "s4[2]", {"u4[2] {15, 7}"}), "{-1, 7}");
  EXPECT_EQ(run_op("bitcast-convert", "u8[1]", {"f8e4m3fn[1] {448}"}), "{126}");
}

TEST(BitcastConvert, OtherWidthsPutLowBitsFirst) {
  EXPECT_EQ(run_op("bitcast-convert", "u8[2,4]", {"u32[2] {67305985, 255}"}),
            "{ {1, 2, 3, 4}, {255, 0, 0, 0} }");
  EXPECT_EQ(run_op("bitcast-convert", "u32[2]", {"u8[2,4] {{1,2,3,4},{255,0,0,0}}"}),
            "{67305985, 255}");
  EXPECT_EQ(run_op("bitcast-convert", "u4[1,2]", {"s8[1] {-16}"}), "{ {0, 15} }");
  EXPECT_EQ(run_op("bitcast-convert", "f64[]", {"u32[2] {0, 1072693248}"}), "1");
  for (bool widen : {false, true}) {
    EXPECT_EQ(run_op("bitcast-convert", "c64[1,2]", {"c128[1] {(2, 0)}"}, "", {.widen = widen}),
              "{ {(0, 2), (0, 0)} }");
  }
}

TEST(BitcastConvert, RoundsAWidenedOperandFirst) {
  // 1/3 in f64 has other bits; the module uses the bits of the f32.
  const std::string text = R"(
    one = f32[] constant(1)
    three = f32[] constant(3)
    third = f32[] divide(one, three)
    ROOT r = u32[] bitcast-convert(third))";
  EXPECT_EQ(run(text), "1051372203");
  EXPECT_EQ(run(text, {.widen = true}), "1051372203");
}

TEST(ReducePrecision, RoundsMantissaAndExponent) {
  auto reduce = [](const std::string& x, int exponent, int mantissa) {
    return run_op("reduce-precision", x.substr(0, x.find(' ')), {x},
                  "exponent_bits=" + std::to_string(exponent) +
                      ", mantissa_bits=" + std::to_string(mantissa));
  };
  EXPECT_EQ(reduce("f32[3] {1.00390625, 1.01171875, 1.0039064}", 8, 7), "{1, 1.015625, 1.0078125}");
  // As in f16: overflow gives infinity, subnormals of f16 become zero.
  EXPECT_EQ(reduce("f32[5] {65519, 65520, 6.1035156e-05, 6.1e-05, -6.1e-05}", 5, 10),
            "{65504, inf, 6.1035156e-05, 0, -0}");
  EXPECT_EQ(reduce("f32[3] {nan, inf, -inf}", 5, 10), "{nan, inf, -inf}");
  EXPECT_EQ(reduce("f32[1] {nan}", 8, 0), "{inf}");
  EXPECT_EQ(reduce("f64[1] {1.1}", 11, 52), "{1.1}");
}

TEST(StochasticConvert, RoundsByTheRandomBits) {
  EXPECT_EQ(run_op("stochastic-convert", "s8[6]",
                   {"f32[6] {1.5, 1.5, -1.25, 300, nan, 2}",
                    "u32[6] {2147483647, 2147483648, 0, 0, 0, 0}"}),
            "{2, 1, -2, 127, 0, 2}");
}

}  // namespace
}  // namespace heddle::interp
