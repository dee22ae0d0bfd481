#include <limits>

#include "hlo/shape_rules.h"
#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ShapeMovement, Broadcast) {
  EXPECT_EQ(infer_as("f32[4,2,3]", Opcode::broadcast, {"f32[2,3]"}, DimensionsAttrs{{1, 2}}),
            "f32[4,2,3]");
  EXPECT_EQ(infer_as("f32[3,2]", Opcode::broadcast, {"f32[2,3]"}, DimensionsAttrs{{1, 0}}),
            "f32[3,2]");
  EXPECT_EQ(infer_as("f32[5]", Opcode::broadcast, {"f32[]"}, DimensionsAttrs{}), "f32[5]");
  EXPECT_EQ(infer_as("f32[4,<=2]", Opcode::broadcast, {"f32[<=2]"}, DimensionsAttrs{{1}}),
            "f32[4,<=2]");
}

TEST(ShapeMovement, BroadcastRefuses) {
  EXPECT_EQ(infer(Opcode::broadcast, {"f32[2]"}, DimensionsAttrs{{0}}),
            "error: broadcast: the shape cannot be inferred and must be given");
  EXPECT_EQ(infer_as("f32[4,3]", Opcode::broadcast, {"f32[2]"}, DimensionsAttrs{{1}}),
            "error: broadcast: dims 2 and 3 differ (operand 0 axis 0, output axis 1)");
  EXPECT_EQ(infer_as("f32[4,2]", Opcode::broadcast, {"f32[2]"}, DimensionsAttrs{{2}}),
            "error: broadcast: dimensions names dimension 2 of a rank 2 array");
  EXPECT_EQ(infer_as("f32[2,2]", Opcode::broadcast, {"f32[2,2]"}, DimensionsAttrs{{0, 0}}),
            "error: broadcast: dimensions={0, 0} names dimension 0 twice");
  EXPECT_EQ(infer_as("f32[4,2]", Opcode::broadcast, {"f32[2]"}, DimensionsAttrs{}),
            "error: broadcast: dimensions={} has 0 entries, operand 0 is f32[2]");
  EXPECT_EQ(infer_as("s32[4,2]", Opcode::broadcast, {"f32[2]"}, DimensionsAttrs{{1}}),
            "error: broadcast: declared s32[4,2], but its operands give f32[4,2]");
}

TEST(ShapeMovement, Concatenate) {
  const DimensionsAttrs axis1{{1}};
  EXPECT_EQ(infer(Opcode::concatenate, {"f32[2,3]", "f32[2,4]", "f32[2,0]"}, axis1), "f32[2,7]");
  EXPECT_EQ(infer(Opcode::concatenate, {"f32[<=2,3]", "f32[2,<=4]"}, axis1), "f32[<=2,<=7]");
  EXPECT_EQ(infer(Opcode::concatenate, {"f32[2,?]", "f32[2,4]"}, axis1), "f32[2,?]");
  EXPECT_EQ(infer(Opcode::concatenate, {"f32[2,3]", "f32[3,3]"}, axis1),
            "error: concatenate: dims 2 and 3 differ (operand 1 axis 0)");
  EXPECT_EQ(infer(Opcode::concatenate, {"f32[2]", "f32[2]"}, axis1),
            "error: concatenate: dimensions names dimension 1 of a rank 1 array");
  EXPECT_EQ(infer(Opcode::concatenate, {"f32[2,3]", "s32[2,3]"}, axis1),
            "error: concatenate: types f32 and s32 differ (operands 0 and 1)");
  const Shape large = Shape::array(Type::f32, {0, kMax / 2 + 1});
  EXPECT_EQ(infer_shapes(Opcode::concatenate, {large, large}, axis1),
            "error: concatenate: extent 4611686018427387904 + 4611686018427387904 overflows 64 "
            "bits");
}

TEST(ShapeMovement, Reshape) {
  EXPECT_EQ(infer_as("f32[6]", Opcode::reshape, {"f32[2,3]"}), "f32[6]");
  EXPECT_EQ(infer_as("f32[1,1]", Opcode::reshape, {"f32[]"}), "f32[1,1]");
  EXPECT_EQ(infer_as("f32[<=6]", Opcode::reshape, {"f32[<=2,3]"}), "f32[<=6]");
  EXPECT_EQ(infer_as("f32[?]", Opcode::reshape, {"f32[<=2,3]"}), "f32[?]");
  EXPECT_EQ(infer_as("f32[5]", Opcode::reshape, {"f32[2,3]"}),
            "error: reshape: f32[2,3] has 6 elements, f32[5] has 5");
  EXPECT_EQ(infer_as("s32[6]", Opcode::reshape, {"f32[2,3]"}),
            "error: reshape: declared s32[6], but its operands give f32[6]");
  EXPECT_EQ(infer_as("f32[6]", Opcode::reshape, {"f32[2,3]"}, ReshapeAttrs{1}),
            "error: reshape: inferred_dimension names dimension 1 of a rank 1 array");
}

TEST(ShapeMovement, DynamicReshape) {
  EXPECT_EQ(infer_as("f32[<=3,2]", Opcode::dynamic_reshape, {"f32[<=6]", "s32[]", "s32[]"}),
            "f32[<=3,2]");
  EXPECT_EQ(infer_as("f32[<=3,2]", Opcode::dynamic_reshape, {"f32[<=6]", "s32[]"}),
            "error: dynamic-reshape: 2 operands, wanted the data and 2 sizes");
}

TEST(ShapeMovement, Bitcast) {
  EXPECT_EQ(infer_as("s32[3,2]", Opcode::bitcast, {"f32[2,3]"}), "s32[3,2]");
  EXPECT_EQ(infer_as("u8[2,4]", Opcode::bitcast, {"f32[2]"}), "u8[2,4]");
  EXPECT_EQ(infer_as("f32[7]", Opcode::bitcast, {"f32[2,3]"}),
            "error: bitcast: f32[2,3] and f32[7] differ in size");
}

TEST(ShapeMovement, Transpose) {
  EXPECT_EQ(infer(Opcode::transpose, {"f32[2,<=3,4]"}, DimensionsAttrs{{2, 0, 1}}), "f32[4,2,<=3]");
  EXPECT_EQ(
      infer(Opcode::transpose, {"f32[2,3]"}, DimensionsAttrs{{0}}),
      "error: transpose: dimensions={0} is not a permutation of the 2 dimensions of operand 0");
  EXPECT_EQ(infer(Opcode::transpose, {"f32[2,3]"}, DimensionsAttrs{{1, 1}}),
            "error: transpose: dimensions={1, 1} names dimension 1 twice");
  EXPECT_EQ(infer(Opcode::transpose, {"f32[2,3]"}, DimensionsAttrs{{-1, 0}}),
            "error: transpose: dimensions names dimension -1 of a rank 2 array");
}

TEST(ShapeMovement, Reverse) {
  EXPECT_EQ(infer(Opcode::reverse, {"f32[2,3]"}, DimensionsAttrs{{1, 0}}), "f32[2,3]");
  EXPECT_EQ(infer(Opcode::reverse, {"f32[2,3]"}, DimensionsAttrs{{2}}),
            "error: reverse: dimensions names dimension 2 of a rank 2 array");
}

TEST(ShapeMovement, Iota) {
  EXPECT_EQ(infer_as("s32[2,3]", Opcode::iota, {}, DimensionAttrs{1}), "s32[2,3]");
  EXPECT_EQ(infer_as("s32[]", Opcode::iota, {}, DimensionAttrs{0}),
            "error: iota: iota_dimension names dimension 0 of a rank 0 array");
  EXPECT_EQ(infer_as("pred[2]", Opcode::iota, {}, DimensionAttrs{0}),
            "error: iota: declared pred[2], wanted an integer or float or complex type");
}

TEST(ShapeMovement, DimensionSizes) {
  EXPECT_EQ(infer(Opcode::get_dimension_size, {"f32[2,<=3]"}, DimensionAttrs{1}), "s32[]");
  EXPECT_EQ(infer(Opcode::get_dimension_size, {"f32[2]"}, DimensionAttrs{1}),
            "error: get-dimension-size: dimensions names dimension 1 of a rank 1 array");
  EXPECT_EQ(infer(Opcode::set_dimension_size, {"f32[2,3]", "s32[]"}, DimensionAttrs{1}),
            "f32[2,<=3]");
  EXPECT_EQ(
      infer_as("f32[2,3]", Opcode::set_dimension_size, {"f32[2,<=3]", "s32[]"}, DimensionAttrs{1}),
      "f32[2,3]");
  EXPECT_EQ(infer(Opcode::set_dimension_size, {"f32[2,3]", "s64[]"}, DimensionAttrs{1}),
            "error: set-dimension-size: operand 1 is s64[], wanted s32[]");
}

TEST(ShapeMovement, SizesThatOverflowAreErrors) {
  const Shape wide = Shape::array(Type::f32, {int64_t{1} << 40});
  Shape huge = Shape::array(Type::f32, {int64_t{1} << 40, int64_t{1} << 40});
  const Shape* operand = &wide;
  auto result = infer_shape(Opcode::broadcast, {&operand, 1}, DimensionsAttrs{{0}}, {}, &huge);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "broadcast: the size of f32[1099511627776,1099511627776] overflows 64 bits");
  // A zero extent must not hide that they are too large.
  huge = Shape::array(Type::f32, {0, kMax, kMax});
  EXPECT_FALSE(infer_shape(Opcode::parameter, {}, ParameterAttrs{0}, {}, &huge));
  huge = Shape::make_tuple({huge});
  EXPECT_FALSE(infer_shape(Opcode::parameter, {}, ParameterAttrs{0}, {}, &huge));
}

}  // namespace
}  // namespace heddle::hlo
