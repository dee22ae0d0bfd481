#include "tensor/shape.h"

#include <gtest/gtest.h>

namespace heddle::tensor {
namespace {

Dim bounded(int64_t size) {
  Dim dim(size);
  dim.dynamic = true;
  return dim;
}

TEST(shape, TrueRank) {
  EXPECT_EQ(Shape::array(Type::f32, {2, 3}).true_rank(), 2);
  EXPECT_EQ(Shape::array(Type::f32, {1, 3, 1, 4, 1}).true_rank(), 2);
  EXPECT_EQ(Shape::array(Type::f32, {1, 1}).true_rank(), 0);
  EXPECT_EQ(Shape::array(Type::f32, {0, 2}).true_rank(), 1);
  EXPECT_EQ(Shape::scalar(Type::f32).true_rank(), 0);
  EXPECT_EQ(Shape(Type::f32, {bounded(4), bounded(Dim::kUnbounded)}).true_rank(), 2);
}

TEST(shape, NegativeDim) {
  Shape shape = Shape::array(Type::s8, {2, 3, 5});
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.dim(-1), 5);
  EXPECT_EQ(shape.dim(-2), 3);
  EXPECT_EQ(shape.dim(-3), 2);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(shape.dim(i), shape.dim(i - 3));
}

TEST(shape, Sizes) {
  EXPECT_EQ(Shape::scalar(Type::f64).elems(), 1);
  EXPECT_EQ(Shape::array(Type::f32, {2, 3}).elems(), 6);
  EXPECT_EQ(Shape::array(Type::f32, {2, 3}).bytes(), 24);
  EXPECT_EQ(Shape::array(Type::s4, {3}).bytes(), 3);
  EXPECT_EQ(Shape::array(Type::f32, {2, 0, 3}).elems(), 0);
  EXPECT_EQ(Shape::make_tuple({Shape::array(Type::c64, {2}), Shape::make_token()}).bytes(), 16);
  EXPECT_EQ(Shape(Type::f32, {bounded(7)}).elems(), 7);
}

TEST(shape, SizesSaturate) {
  Shape huge = Shape::array(Type::f32, {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_EQ(huge.elems(), INT64_MAX);
  EXPECT_EQ(huge.bytes(), INT64_MAX);
  EXPECT_EQ(Shape::array(Type::f64, {int64_t{1} << 61}).bytes(), INT64_MAX);
  EXPECT_EQ(Shape(Type::f32, {bounded(Dim::kUnbounded)}).elems(), INT64_MAX);
  EXPECT_EQ(Shape::make_tuple({huge, huge}).bytes(), INT64_MAX);
}

TEST(shape, CheckedProduct) {
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(checked_product({3, 4, 5}), 60);
  EXPECT_EQ(checked_product({3, 0, 5}), 0);
  EXPECT_EQ(checked_product({int64_t{1} << 62, 2}), std::nullopt);
  EXPECT_EQ(checked_product({0, int64_t{1} << 62, 2}), std::nullopt);
  EXPECT_EQ(checked_product({INT64_MAX, 1}), INT64_MAX);
  EXPECT_EQ(checked_product({2, -1}), std::nullopt);
}

TEST(shape, Text) {
  EXPECT_EQ(to_string(Shape::scalar(Type::f32)), "f32[]");
  EXPECT_EQ(to_string(Shape::array(Type::bf16, {2, 3})), "bf16[2,3]");
  Shape shape(Type::f32, {2, bounded(3), bounded(Dim::kUnbounded)});
  EXPECT_EQ(to_string(shape), "f32[2,<=3,?]");
  shape.set_layout(Layout::row_major(3));
  EXPECT_EQ(to_string(shape), "f32[2,<=3,?]{2,1,0}");
  EXPECT_EQ(to_string(shape, false), "f32[2,<=3,?]");
  EXPECT_EQ(to_string(Shape()), "()");
  EXPECT_EQ(to_string(Shape::make_token()), "token[]");
  EXPECT_EQ(to_string(Shape::make_opaque()), "opaque[]");
  Shape scalar = Shape::scalar(Type::s32);
  scalar.set_layout(Layout());
  EXPECT_EQ(to_string(scalar), "s32[]");
  Shape inner = Shape::make_tuple({scalar});
  EXPECT_EQ(to_string(Shape::make_tuple({scalar, inner, Shape::array(Type::pred, {2})})),
            "(s32[], (s32[]), pred[2])");
}

TEST(shape, EqualityAndCompatibility) {
  Shape plain = Shape::array(Type::f32, {2, 3});
  Shape column = plain;
  column.set_layout(Layout{.minor_to_major = {0, 1}});
  EXPECT_NE(plain, column);
  EXPECT_TRUE(plain.compatible(column));
  EXPECT_EQ(plain, column.without_layout());
  EXPECT_EQ(plain.layout_or_default(), Layout::row_major(2));
  EXPECT_FALSE(plain.compatible(Shape::array(Type::f32, {3, 2})));
  EXPECT_FALSE(plain.compatible(Shape::array(Type::f32, {2, 3, 1})));
  EXPECT_FALSE(plain.compatible(Shape::array(Type::s32, {2, 3})));
  EXPECT_TRUE(plain.same_extents(Shape::array(Type::s32, {2, 3})));
  EXPECT_FALSE(plain.same_extents(Shape::make_token()));
  EXPECT_TRUE(plain.compatible(Shape(Type::f32, {bounded(2), 3})));
  Shape tuple = Shape::make_tuple({plain, column});
  EXPECT_TRUE(tuple.compatible(Shape::make_tuple({plain, plain})));
  EXPECT_EQ(tuple.without_layout(), Shape::make_tuple({plain, plain}));
  EXPECT_FALSE(tuple.compatible(Shape::make_tuple({plain})));
}

TEST(shape, Static) {
  EXPECT_TRUE(Shape::array(Type::f32, {2}).is_static());
  Shape dynamic(Type::f32, {bounded(2)});
  EXPECT_FALSE(dynamic.is_static());
  EXPECT_FALSE(Shape::make_tuple({Shape::scalar(Type::f32), dynamic}).is_static());
}

}  // namespace
}  // namespace heddle::tensor
