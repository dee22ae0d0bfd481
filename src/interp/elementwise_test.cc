#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

std::string unary(const std::string& op, const std::string& x) {
  return run_op(op, x.substr(0, x.find(' ')), {x});
}
std::string binary(const std::string& op, const std::string& a, const std::string& b) {
  return run_op(op, a.substr(0, a.find(' ')), {a, b});
}

TEST(Elementwise, IntegersWrapAtTheirWidth) {
  EXPECT_EQ(binary("add", "s8[2] {127, -128}", "s8[2] {1, -1}"), "{-128, 127}");
  EXPECT_EQ(binary("multiply", "u8[2] {16, 255}", "u8[2] {17, 255}"), "{16, 1}");
  EXPECT_EQ(binary("subtract", "u32[1] {0}", "u32[1] {1}"), "{4294967295}");
  EXPECT_EQ(binary("add", "s4[3] {7, -8, 3}", "s4[3] {1, -1, 2}"), "{-8, 7, 5}");
  EXPECT_EQ(binary("multiply", "u4[1] {5}", "u4[1] {5}"), "{9}");
  EXPECT_EQ(binary("add", "s2[1] {1}", "s2[1] {1}"), "{-2}");
  EXPECT_EQ(binary("multiply", "s64[1] {4611686018427387904}", "s64[1] {2}"),
            "{-9223372036854775808}");
  EXPECT_EQ(unary("abs", "s8[2] {-128, -3}"), "{-128, 3}");
  EXPECT_EQ(unary("negate", "s16[2] {-32768, 5}"), "{-32768, -5}");
}

TEST(Elementwise, DivisionByZeroAndByMinusOne) {
  EXPECT_EQ(binary("divide", "s32[4] {7, -7, 5, -2147483648}", "s32[4] {2, 2, 0, -1}"),
            "{3, -3, -1, -2147483648}");
  EXPECT_EQ(binary("remainder", "s32[4] {7, -7, 5, -2147483648}", "s32[4] {2, 2, 0, -1}"),
            "{1, -1, 5, 0}");
  EXPECT_EQ(binary("divide", "u8[2] {200, 3}", "u8[2] {7, 0}"), "{28, 255}");
  EXPECT_EQ(binary("remainder", "u8[2] {200, 3}", "u8[2] {7, 0}"), "{4, 3}");
  EXPECT_EQ(binary("divide", "s64[1] {-9223372036854775808}", "s64[1] {-1}"),
            "{-9223372036854775808}");
}

TEST(Elementwise, PowerOfIntegers) {
  EXPECT_EQ(binary("power", "s64[6] {-1, -1, -3, 1, -3, 0}", "s64[6] {1, 0, -3, -3, 3, 2}"),
            "{-1, 1, 0, 1, -27, 0}");
  EXPECT_EQ(binary("power", "u32[3] {0, 5, 3}", "u32[3] {0, 5, 21}"), "{1, 3125, 1870418611}");
}

TEST(Elementwise, ShiftsBeyondTheWidth) {
  EXPECT_EQ(binary("shift-left", "s8[4] {1, 1, 1, -1}", "s8[4] {7, 8, -1, 1}"), "{-128, 0, 0, -2}");
  EXPECT_EQ(binary("shift-right-logical", "s8[4] {-1, -1, -128, 5}", "s8[4] {1, 8, 7, 0}"),
            "{127, 0, 1, 5}");
  EXPECT_EQ(binary("shift-right-arithmetic", "s8[4] {-128, -128, 64, 64}", "s8[4] {1, 9, 9, 3}"),
            "{-64, -1, 0, 8}");
  EXPECT_EQ(binary("shift-right-arithmetic", "u8[3] {128, 128, 127}", "u8[3] {1, 100, 100}"),
            "{192, 255, 0}");
  EXPECT_EQ(binary("shift-left", "u32[2] {1, 1}", "u32[2] {31, 32}"), "{2147483648, 0}");
}

TEST(Elementwise, BitsOfIntegers) {
  EXPECT_EQ(unary("count-leading-zeros", "s8[4] {0, 1, -1, 64}"), "{8, 7, 0, 1}");
  EXPECT_EQ(unary("count-leading-zeros", "u32[2] {0, 65536}"), "{32, 15}");
  EXPECT_EQ(unary("popcnt", "s16[3] {-1, 0, 5}"), "{16, 0, 2}");
  EXPECT_EQ(unary("not", "s4[2] {0, 7}"), "{-1, -8}");
  EXPECT_EQ(unary("not", "u4[2] {0, 7}"), "{15, 8}");
  EXPECT_EQ(unary("not", "pred[2] {0, 1}"), "{1, 0}");
  EXPECT_EQ(binary("xor", "u8[1] {12}", "u8[1] {10}"), "{6}");
  EXPECT_EQ(binary("and", "pred[4] {0, 0, 1, 1}", "pred[4] {0, 1, 0, 1}"), "{0, 0, 0, 1}");
  EXPECT_EQ(binary("or", "s32[1] {12}", "s32[1] {10}"), "{14}");
  EXPECT_EQ(binary("mulhi", "s32[2] {65536, -65536}", "s32[2] {65536, 65536}"), "{1, -1}");
  EXPECT_EQ(binary("mulhi", "u64[1] {9223372036854775808}", "u64[1] {6}"), "{3}");
}

TEST(Elementwise, FloatsRoundToTheirTypeAfterEachOperation) {
  // 2^24 + 1 is a tie in f32, 256 + 1 one in bf16, 2048 + 1 one in f16: to even.
  EXPECT_EQ(binary("add", "f32[1] {16777216}", "f32[1] {1}"), "{16777216}");
  EXPECT_EQ(binary("add", "bf16[2] {256, 256}", "bf16[2] {1, 3}"), "{256, 260}");
  EXPECT_EQ(binary("add", "f16[2] {2048, 2048}", "f16[2] {1, 3}"), "{2048, 2052}");
  EXPECT_EQ(binary("multiply", "f16[1] {256}", "f16[1] {256}"), "{inf}");
  EXPECT_EQ(binary("add", "f8e4m3fn[2] {16, 448}", "f8e4m3fn[2] {1, 1}"), "{16, 450}");
  EXPECT_EQ(binary("multiply", "f8e4m3fn[1] {448}", "f8e4m3fn[1] {2}"), "{nan}");
  EXPECT_EQ(binary("multiply", "f8e5m2[1] {57344}", "f8e5m2[1] {2}"), "{inf}");
  EXPECT_EQ(binary("divide", "f32[2] {1, -1}", "f32[2] {0, 0}"), "{inf, -inf}");
  // An f32 subnormal stays one.
  EXPECT_EQ(binary("multiply", "f32[1] {1e-30}", "f32[1] {1e-10}"), "{1e-40}");
}

TEST(Elementwise, FunctionsAreCorrectlyRounded) {
  EXPECT_EQ(unary("exponential", "f32[3] {1, 0, 89}"), "{2.7182817, 1, inf}");
  EXPECT_EQ(unary("log", "f64[3] {10, 0, -1}"), "{2.302585092994046, -inf, -nan}");
  EXPECT_EQ(unary("tanh", "f64[2] {0.5, -40}"), "{0.46211715726000974, -1}");
  EXPECT_EQ(unary("logistic", "f32[4] {0, 2, 200, -200}"), "{0.5, 0.8807971, 1, 0}");
  EXPECT_EQ(unary("rsqrt", "f32[3] {4, 0, 2}"), "{0.5, inf, 0.70710677}");
  EXPECT_EQ(unary("cbrt", "f32[2] {-27, 8}"), "{-3, 2}");
  EXPECT_EQ(unary("erf", "f64[1] {1}"), "{0.8427007929497149}");
  EXPECT_EQ(unary("log-plus-one", "f64[1] {1e-20}"), "{1e-20}");
  EXPECT_EQ(unary("exponential-minus-one", "f64[1] {1e-20}"), "{1e-20}");
  EXPECT_EQ(unary("sine", "f32[1] {1}"), "{0.84147096}");
  EXPECT_EQ(unary("cosine", "f32[1] {1}"), "{0.5403023}");
  EXPECT_EQ(unary("tan", "f64[1] {1}"), "{1.5574077246549023}");
  EXPECT_EQ(unary("sqrt", "bf16[1] {2}"), "{1.414}");
  EXPECT_EQ(binary("atan2", "f64[2] {1, -0}", "f64[2] {-1, -1}"),
            "{2.356194490192345, -3.141592653589793}");
  EXPECT_EQ(binary("power", "f32[4] {2, -8, 0, nan}", "f32[4] {10, 2, 0, 0}"), "{1024, 64, 1, 1}");
  EXPECT_EQ(binary("remainder", "f32[3] {5.5, -5.5, 1}", "f32[3] {2, 2, inf}"), "{1.5, -1.5, 1}");
}

TEST(Elementwise, RoundingAndSigns) {
  EXPECT_EQ(unary("round-nearest-even", "f32[4] {0.5, 1.5, 2.5, -0.5}"), "{0, 2, 2, -0}");
  EXPECT_EQ(unary("round-nearest-afz", "f32[4] {0.5, 1.5, 2.5, -0.5}"), "{1, 2, 3, -1}");
  EXPECT_EQ(unary("floor", "f32[2] {-1.5, 1.5}"), "{-2, 1}");
  EXPECT_EQ(unary("ceil", "f32[2] {-1.5, 1.5}"), "{-1, 2}");
  EXPECT_EQ(unary("sign", "f32[4] {-3, 0, -0, nan}"), "{-1, 0, -0, nan}");
  EXPECT_EQ(unary("sign", "s32[3] {-3, 0, 9}"), "{-1, 0, 1}");
  EXPECT_EQ(unary("abs", "f32[2] {-0, -inf}"), "{0, inf}");
  EXPECT_EQ(run_op("is-finite", "pred[4]", {"f32[4] {1, inf, -inf, nan}"}), "{1, 0, 0, 0}");
}

TEST(Elementwise, MinimumAndMaximumCarryNaNAndOrderZeros) {
  EXPECT_EQ(binary("maximum", "f32[4] {nan, 1, -0, 3}", "f32[4] {1, nan, 0, 2}"),
            "{nan, nan, 0, 3}");
  EXPECT_EQ(binary("minimum", "f32[4] {nan, 1, 0, 3}", "f32[4] {1, nan, -0, 2}"),
            "{nan, nan, -0, 2}");
  EXPECT_EQ(binary("maximum", "s8[2] {-1, 3}", "s8[2] {1, 2}"), "{1, 3}");
  EXPECT_EQ(binary("minimum", "u8[1] {255}", "u8[1] {1}"), "{1}");
  EXPECT_EQ(run_op("clamp", "f32[4]", {"f32[] 0", "f32[4] {-1, 0.5, 2, nan}", "f32[] 1"}),
            "{0, 0.5, 1, nan}");
  EXPECT_EQ(
      run_op("clamp", "s32[3]", {"s32[3] {0, 0, 5}", "s32[3] {-1, 7, 7}", "s32[3] {3, 3, 3}"}),
      "{0, 3, 3}");
}

TEST(Elementwise, Select) {
  EXPECT_EQ(run_op("select", "s32[2]", {"pred[2] {1, 0}", "s32[2] {1, 2}", "s32[2] {3, 4}"}),
            "{1, 4}");
  EXPECT_EQ(run_op("select", "f32[2]", {"pred[] false", "f32[2] {1, 2}", "f32[2] {3, 4}"}),
            "{3, 4}");
}

TEST(Elementwise, Compare) {
  auto compare = [](const std::string& a, const std::string& b, const std::string& attrs) {
    return run_op("compare", "pred" + a.substr(a.find('['), a.find(' ') - a.find('[')), {a, b},
                  attrs);
  };
  EXPECT_EQ(compare("f32[3] {nan, 0, 1}", "f32[3] {nan, -0, 2}", "direction=EQ"), "{0, 1, 0}");
  EXPECT_EQ(compare("f32[3] {nan, 0, 1}", "f32[3] {nan, -0, 2}", "direction=NE"), "{1, 0, 1}");
  EXPECT_EQ(compare("f32[2] {nan, 1}", "f32[2] {1, nan}", "direction=GE"), "{0, 0}");
  EXPECT_EQ(compare("f32[5] {-0, nan, -nan, 0, inf}", "f32[5] {0, inf, -inf, 0, nan}",
                    "direction=LT, type=TOTALORDER"),
            "{1, 0, 1, 0, 1}");
  EXPECT_EQ(compare("bf16[2] {-nan, -1}", "bf16[2] {-inf, -2}", "direction=GT, type=TOTALORDER"),
            "{0, 1}");
  EXPECT_EQ(compare("u8[1] {200}", "u8[1] {100}", "direction=GT"), "{1}");
  EXPECT_EQ(compare("s8[1] {-56}", "s8[1] {100}", "direction=GT"), "{0}");
  EXPECT_EQ(compare("c64[2] {(1, 2), (1, 2)}", "c64[2] {(1, 2), (1, 3)}", "direction=EQ"),
            "{1, 0}");
  EXPECT_EQ(compare("pred[2] {0, 1}", "pred[2] {1, 1}", "direction=LT"), "{1, 0}");
}

TEST(Elementwise, Complex) {
  EXPECT_EQ(binary("multiply", "c64[1] {(1, 2)}", "c64[1] {(3, -1)}"), "{(5, 5)}");
  EXPECT_EQ(binary("divide", "c64[1] {(5, 5)}", "c64[1] {(3, -1)}"), "{(1, 2)}");
  EXPECT_EQ(run_op("abs", "f32[1]", {"c64[1] {(3, -4)}"}), "{5}");
  EXPECT_EQ(run_op("real", "f32[1]", {"c64[1] {(3, -4)}"}), "{3}");
  EXPECT_EQ(run_op("imag", "f32[1]", {"c64[1] {(3, -4)}"}), "{-4}");
  EXPECT_EQ(run_op("complex", "c64[1]", {"f32[1] {3}", "f32[1] {-4}"}), "{(3, -4)}");
  EXPECT_EQ(unary("sqrt", "c128[1] {(-3, 4)}"), "{(1, 2)}");
  EXPECT_EQ(unary("sign", "c128[2] {(3, 4), (0, 0)}"), "{(0.6, 0.8), (0, 0)}");
  EXPECT_EQ(unary("exponential", "c128[1] {(0, 0)}"), "{(1, 0)}");
  EXPECT_EQ(unary("log-plus-one", "c128[1] {(1e-20, 1e-20)}"), "{(1e-20, 1e-20)}");
  EXPECT_EQ(unary("exponential-minus-one", "c128[1] {(1e-20, 1e-20)}"), "{(1e-20, 1e-20)}");
  EXPECT_EQ(binary("power", "c64[2] {(0, 1), (0, 0)}", "c64[2] {(2, 0), (0, 0)}").substr(0, 3),
            "{(-");
}

TEST(Elementwise, ComplexMaximumIsByRealThenImaginaryPart) {
  EXPECT_EQ(binary("maximum", "c64[2] {(1, 5), (2, 1)}", "c64[2] {(2, 0), (2, 3)}"),
            "{(2, 0), (2, 3)}");
  EXPECT_EQ(binary("minimum", "c64[2] {(1, 5), (2, 1)}", "c64[2] {(2, 0), (2, 3)}"),
            "{(1, 5), (2, 1)}");
}

TEST(Elementwise, ManyBlocks) {
  // More elements than fit a block, with a scalar operand.
  EXPECT_EQ(run(R"(
    i = s32[5000] iota(), iota_dimension=0
    low = s32[] constant(10)
    high = s32[] constant(4000)
    c = s32[5000] clamp(low, i, high)
    last = s32[3] slice(c), slice={[3999:4002]}
    first = s32[2] slice(c), slice={[10:12]}
    ROOT r = s32[5] concatenate(first, last), dimensions={0})"),
            "{10, 11, 3999, 4000, 4000}");
}

TEST(Elementwise, MapAppliesItsComputation) {
  EXPECT_EQ(run(R"(
    f { a = f32[] parameter(0)
        b = f32[] parameter(1)
        m = f32[] multiply(a, b)
        one = f32[] constant(1)
        ROOT r = f32[] add(m, one) }
    ENTRY e { x = f32[3] constant({1, 2, 3})
              ROOT r = f32[3] map(x, x), dimensions={0}, to_apply=f })"),
            "{2, 5, 10}");
  // A body that is not just scalar operators: evaluated in full for each element.
  EXPECT_EQ(run(R"(
    add { a = s32[] parameter(0)
          b = s32[] parameter(1)
          ROOT r = s32[] add(a, b) }
    f { a = s32[] parameter(0)
        three = s32[3] broadcast(a), dimensions={}
        zero = s32[] constant(0)
        ROOT r = s32[] reduce(three, zero), dimensions={0}, to_apply=add }
    ENTRY e { x = s32[2] constant({1, 5})
              ROOT r = s32[2] map(x), dimensions={0}, to_apply=f })"),
            "{3, 15}");
}

// Each opcode on a type that its shape rule accepts: floats, else integers.
TEST(Elementwise, EveryOperatorOfTheTableHasAMeaning) {
  constexpr hlo::Opcode kAll[] = {
#define HEDDLE_OP(name, ...) hlo::Opcode::name,
#include "hlo/ops.def"
  };
  for (hlo::Opcode opcode : kAll) {
    const hlo::OpcodeInfo& info = opcode_info(opcode);
    if (!has_trait(opcode, hlo::elementwise) || info.kernel_op.empty() || info.most_operands > 2)
      continue;
    bool known = false;
    for (const char* type : {"f32", "s32"}) {
      const bool test = opcode == hlo::Opcode::is_finite;
      std::string text =
          fmt::format("ENTRY e {{ x = {}[1] constant({{3}})\n ROOT r = {}[1] {}(x{})}}", type,
                      test ? "pred" : type, info.text, info.most_operands == 2 ? ", x" : "");
      auto module = hlo::parse_module(text);
      if (!module || !hlo::verify(**module)) continue;
      known |= unsupported(**module).empty() && evaluate(**module, {}).has_value();
    }
    EXPECT_TRUE(known) << info.text;
  }
}

}  // namespace
}  // namespace heddle::interp
