// Shapes, layouts and literals as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hlo/text.h"

namespace heddle::hlo {
namespace {

using tensor::Dim;
using testing::HasSubstr;

TEST(ShapeText, RoundTrip) {
  for (const char* text :
       {"f32[]", "f32[2,3]{1,0}", "bf16[2,3]", "f32[2,<=3,?]{2,1,0}", "()", "(f32[], (s32[2]), ())",
        "token[]", "opaque[]", "pred[0]", "s4[8,2]{1,0:E(4)}", "f32[8,128]{1,0:T(8,128)(2,1)S(1)}",
        "f32[16]{0:T(*,4)}", "f32[4,4]{1,0:D(D,C)T(2,2)L(8)#(u32)*(u64)E(32)S(5)SC(0:1,2)M(16)}",
        "f32[2,3]{1,0:PD(3,5)}", "c128[1]", "f8e4m3b11fnuz[2]", "f32[]{:T(128)}"}) {
    Result<Shape> shape = parse_shape(text);
    ASSERT_TRUE(shape) << text << ": " << shape.error().message;
    EXPECT_EQ(tensor::to_string(*shape), text);
    Result<Shape> again = parse_shape(tensor::to_string(*shape));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *shape) << text;
  }
}

TEST(ShapeText, Fields) {
  Result<Shape> shape = parse_shape(" f32 [ <=5 , ? , 7 ] ");
  ASSERT_TRUE(shape) << shape.error().message;
  ASSERT_EQ(shape->rank(), 3);
  EXPECT_TRUE(shape->dims()[0].dynamic);
  EXPECT_EQ(shape->dims()[0].size, 5);
  EXPECT_EQ(shape->dims()[1].size, Dim::kUnbounded);
  EXPECT_FALSE(shape->dims()[2].dynamic);
  EXPECT_FALSE(shape->layout());

  shape = parse_shape("s8[4,4]{0,1:T(2,*)E(4)S(3)}");
  ASSERT_TRUE(shape);
  ASSERT_TRUE(shape->layout());
  EXPECT_EQ(shape->layout()->minor_to_major, (Ints{0, 1}));
  EXPECT_EQ(shape->layout()->tiles[0].dims, (Ints{2, tensor::Tile::kCombine}));
  EXPECT_EQ(shape->layout()->element_size_bits, 4);
  EXPECT_EQ(shape->layout()->memory_space, 3);

  shape = parse_shape("b(f32[2])");  // a buffer is its value
  ASSERT_TRUE(shape);
  EXPECT_EQ(tensor::to_string(*shape), "f32[2]");
}

TEST(ShapeText, Errors) {
  for (const char* text : {"", "f32", "f33[2]", "f32[2", "f32[2]]", "f32[2,]x", "f32[2]{0,1}",
                           "f32[2]{1}", "(f32[]", "f32[1]{0:T}", "f32[2]{0:PD(1)}", "tuple[]",
                           "f32[2]{0:T(1152921504606846976)}", "token[2]"}) {
    Result<Shape> shape = parse_shape(text);
    EXPECT_FALSE(shape) << text;
  }
}

Literal value(const char* text, const char* shape) {
  Result<Literal> literal = parse_literal(text, *parse_shape(shape));
  EXPECT_TRUE(literal) << text << ": " << literal.error().message;
  return literal ? *literal : Literal();
}

TEST(LiteralText, Values) {
  const Literal a = value("{ {1, -2}, /*i0=1*/ {3.5, inf} }", "f32[2,2]");
  EXPECT_EQ(a.get_f64(1), -2);
  EXPECT_EQ(a.get_f64(2), 3.5);
  EXPECT_EQ(a.get_f64(3), INFINITY);
  EXPECT_EQ(value("{1 2 3}", "s32[3]").get_s64(2), 3);  // commas are not needed
  EXPECT_EQ(value("18446744073709551615", "u64[]").get_bits(0), ~uint64_t{0});
  EXPECT_EQ(value("-8", "s4[]").get_s64(0), -8);
  EXPECT_EQ(value("true", "pred[]").get_s64(0), 1);
  EXPECT_EQ(value("(1, -0.5)", "c64[]").get_complex(0), std::complex<double>(1, -0.5));
  EXPECT_EQ(value("7", "c128[]").get_complex(0), std::complex<double>(7, 0));
  EXPECT_EQ(value("nan", "f32[]").get_bits(0), 0x7fc00000u);
  EXPECT_EQ(value("-nan(0x123)", "f32[]").get_bits(0), 0xff800123u);
  EXPECT_EQ(value("nan(0x1)", "f16[]").get_bits(0), 0x7c01u);
  EXPECT_EQ(value("-0", "f64[]").get_bits(0), uint64_t{1} << 63);
  EXPECT_EQ(value("1e-50", "f32[]").get_bits(0), 0u);  // underflow is no error
  EXPECT_EQ(value("1e-400", "f64[]").get_bits(0), 0u);
  EXPECT_EQ(value("16777217", "f32[]").get_f64(0), 16777216);
  // The nearest f32 of the decimal, not of its f64: 1 + 2^-24 + 2^-60.
  EXPECT_EQ(value("1.00000005960464477626", "f32[]").get_bits(0), 0x3f800001u);
  EXPECT_EQ(value("({1, 2}, ())", "(f32[2], ())").elements()[0].get_f64(1), 2);
  EXPECT_EQ(value("5", "f32[2,2]").get_f64(0), 5);  // as in XLA: the others are zero
  EXPECT_EQ(value("5", "f32[2,2]").get_f64(3), 0);
}

TEST(LiteralText, ElidedValuesAreAPattern) {
  const Literal a = value("{...}", "f32[3,5]");
  EXPECT_EQ(a, value("{ ... }", "f32[3,5]"));
  EXPECT_NE(a.get_f64(0), a.get_f64(1));
  for (const char* shape : {"pred[9]", "s1[9]", "u1[9]", "s2[9]", "u64[9]", "f4e2m1fn[9]",
                            "f8e8m0fnu[9]", "c64[9]", "bf16[9]"}) {
    const Literal each = value("{...}", shape);
    for (int64_t i = 0; i < 9 && !tensor::is_complex(each.type()); ++i) {
      EXPECT_FALSE(std::isnan(each.get_f64(i))) << shape;
    }
    EXPECT_EQ(value(tensor::to_string(each).c_str(), shape), each) << shape;
  }
}

// Every value of every type of up to 16 bits reads back to its bits, NaNs with their payloads too.
TEST(LiteralText, SmallTypesExhaustively) {
  for (int t = 0; t <= static_cast<int>(tensor::Type::f4e2m1fn); ++t) {
    const auto type = static_cast<tensor::Type>(t);
    const int bits = tensor::type_bits(type);
    if (bits > 16) continue;
    Literal all(Shape::array(type, {int64_t{1} << bits}));
    for (int64_t i = 0; i < all.elems(); ++i)
      tensor::is_float(type) ? all.set_bits(i, i) : all.set_s64(i, i);
    Result<Literal> again = parse_literal(tensor::to_string(all), all.shape());
    ASSERT_TRUE(again) << tensor::type_name(type) << ": " << again.error().message;
    for (int64_t i = 0; i < all.elems(); ++i)
      ASSERT_EQ(again->get_bits(i), all.get_bits(i)) << tensor::type_name(type) << " " << i;
  }
}

TEST(LiteralText, RandomWideValues) {
  uint64_t state = 12345;
  auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  for (auto type : {tensor::Type::f32, tensor::Type::f64, tensor::Type::s32, tensor::Type::s64,
                    tensor::Type::u32, tensor::Type::u64}) {
    Literal all(Shape::array(type, {10, 1000}));
    for (int64_t i = 0; i < all.elems(); ++i)
      all.set_bits(i, (next() >> 32 << 32 | next() >> 32) >> (64 - tensor::type_bits(type)));
    Result<Literal> again = parse_literal(tensor::to_string(all), all.shape());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, all) << tensor::type_name(type);
  }
}

TEST(LiteralText, Errors) {
  struct Case {
    const char *text, *shape, *message;
  };
  for (const Case& c :
       {Case{"{1, 2}", "f32[2,2]", "wanted '{' of dimension 1"},
        Case{"{ {1, 2} }", "f32[2,2]", "has 1 items in dimension 0, wanted 2"},
        Case{"{ {{1}} }", "f32[1,1]", "wanted a number"},
        Case{"1 2", "f32[]", "wanted the end of the literal"}, Case{"", "f32[]", "wanted a number"},
        Case{"1abc", "f32[]", "wanted a number"}, Case{"infinity", "f32[]", "wanted a number"},
        Case{"-1", "u32[]", "-1 is out of the range of u32"},
        Case{"2", "pred[]", "2 is out of the range of pred"},
        Case{"65520", "f16[]", "out of the range of f16"},
        Case{"1e400", "f64[]", "out of the range of f64"},
        Case{"9", "f4e2m1fn[]", "out of the range of f4e2m1fn"},
        Case{"inf", "f6e3m2fn[]", "f6e3m2fn has no infinity"},
        Case{"nan", "f4e2m1fn[]", "f4e2m1fn has no NaN"},
        Case{"-1", "f8e8m0fnu[]", "out of the range of f8e8m0fnu"},
        Case{"(1, 2", "c64[]", "wanted ')' after the complex number"},
        Case{"(1)", "(f32[], f32[])", "wanted a number"},
        Case{"{1}", "f32[0]", "wanted the braces of an array without elements"}}) {
    Result<Literal> literal = parse_literal(c.text, *parse_shape(c.shape));
    ASSERT_FALSE(literal) << c.text;
    EXPECT_THAT(literal.error().message, HasSubstr(c.message)) << c.text;
  }
}

}  // namespace
}  // namespace heddle::hlo
