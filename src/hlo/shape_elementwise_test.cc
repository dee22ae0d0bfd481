#include "hlo/shape_rules.h"
#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

TEST(ShapeElementwise, UnaryKeepsShapeAndType) {
  for (Opcode op : {Opcode::exponential, Opcode::tanh, Opcode::sqrt, Opcode::negate, Opcode::abs,
                    Opcode::sign, Opcode::real})
    EXPECT_EQ(infer(op, {"bf16[2,<=3,?]"}), "bf16[2,<=3,?]") << opcode_text(op);
  EXPECT_EQ(infer(Opcode::cosine, {"c64[2]"}), "c64[2]");
  EXPECT_EQ(infer(Opcode::not_, {"pred[2]"}), "pred[2]");
  EXPECT_EQ(infer(Opcode::popcnt, {"u8[2]"}), "u8[2]");
  EXPECT_EQ(infer(Opcode::negate, {"u8[2]"}), "u8[2]");
}

TEST(ShapeElementwise, UnaryOfOtherTypeResult) {
  EXPECT_EQ(infer(Opcode::is_finite, {"f32[4]"}), "pred[4]");
  EXPECT_EQ(infer(Opcode::abs, {"c64[4]"}), "f32[4]");
  EXPECT_EQ(infer(Opcode::imag, {"c128[4]"}), "f64[4]");
  EXPECT_EQ(infer(Opcode::real, {"f64[4]"}), "f64[4]");
}

TEST(ShapeElementwise, UnaryRefusesTypes) {
  EXPECT_EQ(infer(Opcode::exponential, {"s32[2]"}),
            "error: exponential: operand 0 is s32[2], wanted a float or complex type");
  EXPECT_EQ(infer(Opcode::floor, {"c64[2]"}),
            "error: floor: operand 0 is c64[2], wanted a float type");
  EXPECT_EQ(infer(Opcode::abs, {"u32[2]"}),
            "error: abs: operand 0 is u32[2], wanted a signed integer or float or complex type");
  EXPECT_EQ(infer(Opcode::not_, {"f32[2]"}),
            "error: not: operand 0 is f32[2], wanted a pred or integer type");
  EXPECT_EQ(infer(Opcode::negate, {"(f32[2])"}),
            "error: negate: operand 0 is (f32[2]), wanted an array");
}

TEST(ShapeElementwise, ReducePrecision) {
  EXPECT_EQ(infer_as("f32[2]", Opcode::reduce_precision, {"f32[2]"}, ReducePrecisionAttrs{5, 10}),
            "f32[2]");
  EXPECT_EQ(infer(Opcode::reduce_precision, {"f32[2]"}, ReducePrecisionAttrs{0, 10}),
            "error: reduce-precision: exponent_bits 0 must be at least 1, mantissa_bits 10 at "
            "least 0");
}

TEST(ShapeElementwise, Binary) {
  EXPECT_EQ(infer(Opcode::add, {"f32[2,3]", "f32[2,3]"}), "f32[2,3]");
  EXPECT_EQ(infer(Opcode::maximum, {"pred[2]", "pred[2]"}), "pred[2]");
  EXPECT_EQ(infer(Opcode::add, {"pred[2]", "pred[2]"}), "pred[2]");
  EXPECT_EQ(infer(Opcode::complex, {"f64[2]", "f64[2]"}), "c128[2]");
  EXPECT_EQ(infer(Opcode::shift_left, {"u4[2]", "u4[2]"}), "u4[2]");
}

TEST(ShapeElementwise, BinaryRefuses) {
  EXPECT_EQ(infer(Opcode::add, {"f32[2,3]", "f32[2,4]"}),
            "error: add: dims 3 and 4 differ (operand 1 axis 1)");
  EXPECT_EQ(infer(Opcode::add, {"f32[2,3]", "f32[3]"}),
            "error: add: ranks of f32[2,3] and f32[3] differ (operands 0 and 1); broadcast first");
  EXPECT_EQ(infer(Opcode::add, {"f32[2]", "bf16[2]"}),
            "error: add: types f32 and bf16 differ (operands 0 and 1)");
  EXPECT_EQ(infer(Opcode::subtract, {"pred[2]", "pred[2]"}),
            "error: subtract: operand 0 is pred[2], wanted an integer or float or complex type");
  EXPECT_EQ(infer(Opcode::complex, {"bf16[2]", "bf16[2]"}),
            "error: complex: operand 0 is bf16[2], wanted f32 or f64");
  EXPECT_EQ(infer(Opcode::add, {"f32[2]"}), "error: add: 1 operands, 2 wanted");
  EXPECT_EQ(infer_as("f32[3]", Opcode::add, {"f32[2]", "f32[2]"}),
            "error: add: declared f32[3], but its operands give f32[2]");
}

TEST(ShapeElementwise, DynamicDimensionsPropagate) {
  EXPECT_EQ(infer(Opcode::add, {"f32[<=8,3]", "f32[8,3]"}), "f32[<=8,3]");
  EXPECT_EQ(infer(Opcode::add, {"f32[?,3]", "f32[8,?]"}), "f32[8,3]");
  EXPECT_EQ(infer(Opcode::add, {"f32[?]", "f32[<=8]"}), "f32[<=8]");
  EXPECT_EQ(infer(Opcode::add, {"f32[?]", "f32[?]"}), "f32[?]");
  EXPECT_EQ(infer(Opcode::add, {"f32[<=8]", "f32[<=9]"}),
            "error: add: dims <=8 and <=9 differ (operand 1 axis 0)");
}

TEST(ShapeElementwise, SymbolsPassThrough) {
  Dim n(8);
  n.dynamic = true;
  n.symbol = "n";
  const Shape x(Type::f32, {n, 3}), y = Shape::array(Type::f32, {8, 3});
  for (const auto& operands : {std::vector{&x, &y}, std::vector{&y, &x}}) {
    auto result = infer_shape(Opcode::add, operands, NoAttrs{}, {});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->dims()[0], n);
  }
}

TEST(ShapeElementwise, Compare) {
  EXPECT_EQ(infer(Opcode::compare, {"f32[2]", "f32[2]"}, CompareAttrs{Direction::lt}), "pred[2]");
  EXPECT_EQ(infer(Opcode::compare, {"c64[2]", "c64[2]"}, CompareAttrs{Direction::eq}), "pred[2]");
  EXPECT_EQ(infer(Opcode::compare, {"c64[2]", "c64[2]"}, CompareAttrs{Direction::lt}),
            "error: compare: operand 0 is c64[2], wanted a pred or integer or float type");
  EXPECT_EQ(infer(Opcode::compare, {"s32[2]", "s32[2]"},
                  CompareAttrs{Direction::lt, CompareType::total_order}),
            "error: compare: operand 0 is s32[2], wanted a float type");
}

TEST(ShapeElementwise, SelectAndClampTakeScalars) {
  EXPECT_EQ(infer(Opcode::select, {"pred[2]", "f32[2]", "f32[2]"}), "f32[2]");
  EXPECT_EQ(infer(Opcode::select, {"pred[]", "f32[2]", "f32[2]"}), "f32[2]");
  EXPECT_EQ(infer(Opcode::select, {"pred[3]", "f32[2]", "f32[2]"}),
            "error: select: operand 0 is pred[3], wanted a scalar or the dimensions of f32[2]");
  EXPECT_EQ(infer(Opcode::select, {"pred[2]", "f32[2]", "f32[]"}),
            "error: select: operand 2 is f32[], wanted the dimensions of f32[2]");
  EXPECT_EQ(infer(Opcode::select, {"s32[]", "f32[2]", "f32[2]"}),
            "error: select: operand 0 is s32[], wanted a pred type");
  EXPECT_EQ(infer(Opcode::clamp, {"f32[]", "f32[2]", "f32[2]"}), "f32[2]");
  EXPECT_EQ(infer(Opcode::clamp, {"f32[]", "f32[2]", "s32[2]"}),
            "error: clamp: types f32 and s32 differ (operands 1 and 2)");
}

TEST(ShapeElementwise, Map) {
  Functions f;
  Computation* to_pred = f({"f32[]", "s32[]"}, "pred[]");
  EXPECT_EQ(infer(Opcode::map, {"f32[2,3]", "s32[2,3]"}, DimensionsAttrs{{0, 1}}, {to_pred}),
            "pred[2,3]");
  EXPECT_EQ(infer(Opcode::map, {"f32[2,3]", "s32[2,3]"}, DimensionsAttrs{{1, 0}}, {to_pred}),
            "error: map: dimensions={1, 0} must list all 2 dimensions in order");
  EXPECT_EQ(infer(Opcode::map, {"s32[2]", "s32[2]"}, DimensionsAttrs{{0}}, {to_pred}),
            "error: map: f is (f32[], s32[]) -> pred[], wanted (s32[], s32[]) -> pred[]");
}

TEST(ShapeElementwise, Conversions) {
  EXPECT_EQ(infer_as("s32[<=4]", Opcode::convert, {"f32[<=4]"}), "s32[<=4]");
  EXPECT_EQ(infer(Opcode::convert, {"f32[4]"}),
            "error: convert: the shape cannot be inferred and must be given");
  EXPECT_EQ(infer_as("f32[4]", Opcode::convert, {"c64[4]"}),
            "error: convert: c64 does not convert to f32; take real or imag first");
  EXPECT_EQ(infer_as("s32[5]", Opcode::convert, {"f32[4]"}),
            "error: convert: declared s32[5], but its operands give s32[4]");
  EXPECT_EQ(infer_as("bf16[4]", Opcode::stochastic_convert, {"f32[4]", "u32[4]"}), "bf16[4]");
  EXPECT_EQ(infer_as("bf16[4]", Opcode::stochastic_convert, {"f32[4]", "u16[4]"}),
            "error: stochastic-convert: operand 1 is u16[4], wanted 32 random bits");
}

TEST(ShapeElementwise, BitcastConvertSplitsAndJoinsTheLastDimension) {
  EXPECT_EQ(infer_as("s32[2]", Opcode::bitcast_convert, {"f32[2]"}), "s32[2]");
  EXPECT_EQ(infer_as("u8[2,4]", Opcode::bitcast_convert, {"f32[2]"}), "u8[2,4]");
  EXPECT_EQ(infer_as("f32[2]", Opcode::bitcast_convert, {"u8[2,4]"}), "f32[2]");
  EXPECT_EQ(infer_as("f32[]", Opcode::bitcast_convert, {"u16[2]"}), "f32[]");
  EXPECT_EQ(
      infer_as("f32[2]", Opcode::bitcast_convert, {"u8[2,2]"}),
      "error: bitcast-convert: operand 0 is u8[2,2], wanted a last dimension of 4 to make f32");
  EXPECT_EQ(infer_as("f32[]", Opcode::bitcast_convert, {"u8[]"}),
            "error: bitcast-convert: operand 0 is u8[], wanted a last dimension of 4 to make f32");
  EXPECT_EQ(infer_as("f64[2]", Opcode::bitcast_convert, {"c64[2]"}),
            "error: bitcast-convert: c64 and f64: complex values only become complex ones");
}

TEST(ShapeElementwise, EveryElementwiseRowHasARule) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpcodeInfo& info = opcode_info(opcode);
    if (!(info.traits & Trait::elementwise) || info.least_operands > 2) continue;
    bool some = false;
    for (const char* type : {"f32[2]", "s32[2]", "pred[2]"}) {
      const std::vector<std::string> operands(info.least_operands, type);
      const std::string got = infer(opcode, operands, default_attrs(info.attrs_index), {}, "");
      some = some || got.find("error") != 0;
    }
    const bool needs_more = shape_is_declared(opcode);
    EXPECT_NE(some, needs_more) << info.text;
  }
}

}  // namespace
}  // namespace heddle::hlo
