#include "tensor/pack.h"

#include <gtest/gtest.h>

#include <numeric>

namespace heddle::tensor {
namespace {

Literal iota(Type type, const std::vector<int64_t>& dims) {
  Literal literal(Shape::array(type, dims));
  for (int64_t i = 0; i < literal.elems(); ++i) literal.set_s64(i, i + 1);
  return literal;
}

Layout layout(const char* text) { return *parse_layout(text); }

TEST(pack, SeedExamples) {
  Literal value = iota(Type::s32, {2, 3});
  EXPECT_EQ(to_string(*pack(value, layout("{0,1}"))), "{1, 4, 2, 5, 3, 6}");
  EXPECT_EQ(to_string(*pack(value, layout("{1,0}"))), "{1, 2, 3, 4, 5, 6}");
  EXPECT_EQ(to_string(*pack(value, layout("{0,1:PD(3,5)}"))),
            "{1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0, 0, 0, 0}");
}

TEST(pack, PaddingValue) {
  Literal minus(Shape::scalar(Type::f32));
  minus.set_f64(0, -1);
  EXPECT_EQ(to_string(*pack(iota(Type::f32, {3}), layout("{0:PD(5)}"), minus)),
            "{1, 2, 3, -1, -1}");
  EXPECT_EQ(to_string(*pack(iota(Type::f32, {}), layout("{:T(3)}"), minus)), "{1, -1, -1}");
  EXPECT_FALSE(pack(iota(Type::s32, {3}), layout("{0:PD(5)}"), minus));
}

TEST(pack, UnpackIsTheInverse) {
  for (const char* text :
       {"{2,1,0}", "{0,1,2}", "{1,2,0}", "{1,0,2:PD(3,4,7)}", "{2,1,0:T(2,4)}",
        "{0,2,1:T(4,2)(2,1)}", "{1,2,0:PD(3,4,7)T(*,4)}", "{2,0,1:T(2,2,2,2)}"}) {
    for (Type type : {Type::s4, Type::bf16, Type::f64, Type::c128}) {
      Literal value = iota(type, {2, 3, 5});
      auto memory = pack(value, layout(text));
      ASSERT_TRUE(memory) << memory.error().message;
      std::vector<int64_t> dims = {2, 3, 5};
      EXPECT_EQ(memory->elems(), padded_elems(layout(text), dims));
      auto back = unpack(*memory, value.shape(), layout(text));
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(*back, value) << text;
    }
  }
  Literal empty = iota(Type::f32, {2, 0});
  EXPECT_EQ(*unpack(*pack(empty, layout("{0,1}")), empty.shape(), layout("{0,1}")), empty);
}

TEST(pack, WhatDoesNotFitIsAnError) {
  Literal value = iota(Type::s32, {2, 3});
  EXPECT_FALSE(pack(value, layout("{0}")));
  EXPECT_FALSE(pack(value, layout("{0,1:PD(1,1)}")));
  EXPECT_FALSE(pack(Literal(), layout("{}")));
  EXPECT_EQ(pack(value, layout("{1,0:PD(1000000000,1000000000)}")).error().kind,
            ErrorKind::memory);
  EXPECT_FALSE(unpack(value, value.shape(), layout("{0,1}")));  // memory is rank 1
  EXPECT_FALSE(unpack(iota(Type::s32, {5}), value.shape(), layout("{0,1}")));
  EXPECT_FALSE(unpack(iota(Type::u32, {6}), value.shape(), layout("{0,1}")));
}

}  // namespace
}  // namespace heddle::tensor
