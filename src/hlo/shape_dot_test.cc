#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

DotAttrs dims(Ints lhs_batch, Ints lhs, Ints rhs_batch, Ints rhs) {
  DotAttrs a;
  a.lhs_batch_dims = std::move(lhs_batch);
  a.lhs_contracting_dims = std::move(lhs);
  a.rhs_batch_dims = std::move(rhs_batch);
  a.rhs_contracting_dims = std::move(rhs);
  return a;
}

TEST(ShapeDot, Dot) {
  EXPECT_EQ(infer(Opcode::dot, {"f32[2,3]", "f32[3,5]"}, dims({}, {1}, {}, {0})), "f32[2,5]");
  EXPECT_EQ(infer(Opcode::dot, {"f32[<=7,2,3]", "f32[7,3,<=5]"}, dims({0}, {2}, {0}, {1})),
            "f32[<=7,2,<=5]");
  EXPECT_EQ(infer(Opcode::dot, {"f32[4]", "f32[5]"}, dims({}, {}, {}, {})), "f32[4,5]");
  EXPECT_EQ(infer(Opcode::dot, {"f32[4]", "f32[4]"}, dims({}, {0}, {}, {0})), "f32[]");
}

TEST(ShapeDot, ResultType) {
  const DotAttrs a = dims({}, {1}, {}, {0});
  EXPECT_EQ(infer_as("f32[2,5]", Opcode::dot, {"bf16[2,3]", "bf16[3,5]"}, a), "f32[2,5]");
  EXPECT_EQ(infer_as("s32[2,5]", Opcode::dot, {"s8[2,3]", "u8[3,5]"}, a), "s32[2,5]");
  EXPECT_EQ(infer(Opcode::dot, {"bf16[2,3]", "f32[3,5]"}, a), "f32[2,5]");
  EXPECT_EQ(infer(Opcode::dot, {"s32[2,3]", "f32[3,5]"}, a),
            "error: dot: types s32 and f32 do not mix (operands 0 and 1)");
  EXPECT_EQ(infer_as("f32[2,5]", Opcode::dot, {"c64[2,3]", "c64[3,5]"}, a),
            "error: dot: declared f32[2,5], the operands are complex");
  EXPECT_EQ(infer_as("f32[2,6]", Opcode::dot, {"f32[2,3]", "f32[3,5]"}, a),
            "error: dot: declared f32[2,6], but its operands give f32[2,5]");
}

TEST(ShapeDot, DotRefuses) {
  EXPECT_EQ(infer(Opcode::dot, {"f32[2,128]", "f32[96,5]"}, dims({}, {1}, {}, {0})),
            "error: dot: contracting dims 128 and 96 differ (operand 1 axis 0)");
  EXPECT_EQ(infer(Opcode::dot, {"f32[2,3,4]", "f32[5,4,6]"}, dims({0}, {2}, {0}, {1})),
            "error: dot: batch dims 2 and 5 differ (operand 1 axis 0)");
  EXPECT_EQ(infer(Opcode::dot, {"f32[2,3]", "f32[3,5]"}, dims({}, {1}, {}, {})),
            "error: dot: lhs_contracting_dims={1} and rhs_contracting_dims={} differ in length");
  EXPECT_EQ(infer(Opcode::dot, {"f32[2,3]", "f32[3,5]"}, dims({}, {2}, {}, {0})),
            "error: dot: lhs batch and contracting dims names dimension 2 of a rank 2 array");
  EXPECT_EQ(infer(Opcode::dot, {"f32[2,3]", "f32[2,5]"}, dims({0}, {0}, {0}, {0})),
            "error: dot: lhs batch and contracting dims={0, 0} names dimension 0 twice");
}

TEST(ShapeDot, ScaledDot) {
  const DotAttrs a = dims({}, {1}, {}, {1});
  EXPECT_EQ(infer_as("f32[2,8]", Opcode::scaled_dot,
                     {"f8e4m3fn[2,64]", "f8e4m3fn[8,64]", "f8e8m0fnu[2,2]", "f8e8m0fnu[8,2]"}, a),
            "f32[2,8]");
  EXPECT_EQ(infer_as("f32[2,8]", Opcode::scaled_dot,
                     {"f8e4m3fn[2,64]", "f8e4m3fn[8,64]", "f8e8m0fnu[2,3]", "f8e8m0fnu[8,2]"}, a),
            "error: scaled-dot: 3 scales for dim 64 (operand 2 axis 1)");
}

RaggedDotAttrs ragged(DotAttrs dot, Ints lhs_ragged, Ints rhs_group) {
  return {std::move(dot), std::move(lhs_ragged), std::move(rhs_group)};
}

TEST(ShapeDot, RaggedDot) {
  // Rows, contraction, batch.
  EXPECT_EQ(infer(Opcode::ragged_dot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"},
                  ragged(dims({}, {1}, {}, {1}), {0}, {0})),
            "f32[11,7]");
  EXPECT_EQ(infer(Opcode::ragged_dot, {"f32[11,5]", "f32[5,7]", "s32[3]"},
                  ragged(dims({}, {1}, {}, {0}), {1}, {})),
            "f32[3,11,7]");
  EXPECT_EQ(infer(Opcode::ragged_dot, {"f32[3,11,5]", "f32[3,5,7]", "s32[2]"},
                  ragged(dims({0}, {2}, {0}, {1}), {0}, {})),
            "f32[3,11,7]");
  // Separate group sizes for each outer index.
  EXPECT_EQ(infer(Opcode::ragged_dot, {"f32[19,17,11,5]", "f32[3,19,5,7]", "s32[19,17,3]"},
                  ragged(dims({0}, {3}, {1}, {2}), {2}, {0})),
            "f32[19,17,11,7]");
}

TEST(ShapeDot, RaggedDotRefuses) {
  const DotAttrs rows = dims({}, {1}, {}, {1});
  EXPECT_EQ(
      infer(Opcode::ragged_dot, {"f32[11,5]", "f32[3,5,7]", "s32[4]"}, ragged(rows, {0}, {0})),
      "error: ragged-dot: group dims 3 and 4 differ (operand 1 axis 0)");
  EXPECT_EQ(infer(Opcode::ragged_dot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"}, ragged(rows, {0}, {})),
            "error: ragged-dot: rhs_group_dims={} must name 1 dimension(s)");
  EXPECT_EQ(
      infer(Opcode::ragged_dot, {"f32[11,5]", "f32[3,5,7]", "s32[3]"}, ragged(rows, {0, 1}, {0})),
      "error: ragged-dot: lhs_ragged_dims={0, 1} must name one dimension");
  EXPECT_EQ(infer(Opcode::ragged_dot, {"f32[19,17,11,5]", "f32[3,19,5,7]", "s32[19,11,3]"},
                  ragged(dims({0}, {3}, {1}, {2}), {2}, {0})),
            "error: ragged-dot: group sizes are s32[19,11,3], wanted one row or one for each of "
            "s32[19,17]");
}

// NHWC with HWIO kernels.
ConvolutionAttrs conv(int64_t size, int64_t stride, int64_t pad) {
  ConvolutionAttrs a;
  a.window.dims.assign(2, {.size = size, .stride = stride, .pad_low = pad, .pad_high = pad});
  a.dims.input_batch = a.dims.output_batch = 0;
  a.dims.input_feature = a.dims.output_feature = 3;
  a.dims.input_spatial = a.dims.output_spatial = {1, 2};
  a.dims.kernel_input_feature = 2;
  a.dims.kernel_output_feature = 3;
  a.dims.kernel_spatial = {0, 1};
  return a;
}

TEST(ShapeConvolution, Convolution) {
  EXPECT_EQ(infer(Opcode::convolution, {"f32[<=8,224,224,3]", "f32[7,7,3,64]"}, conv(7, 2, 3)),
            "f32[<=8,112,112,64]");
  ConvolutionAttrs depthwise = conv(3, 1, 1);
  depthwise.feature_group_count = 32;
  EXPECT_EQ(infer(Opcode::convolution, {"f32[1,9,9,32]", "f32[3,3,1,64]"}, depthwise),
            "f32[1,9,9,64]");
  ConvolutionAttrs batches = conv(3, 1, 1);
  batches.batch_group_count = 2;
  EXPECT_EQ(infer(Opcode::convolution, {"f32[4,9,9,3]", "f32[3,3,3,8]"}, batches), "f32[2,9,9,8]");
  EXPECT_EQ(
      infer_as("s32[1,9,9,8]", Opcode::convolution, {"s8[1,9,9,3]", "s8[3,3,3,8]"}, conv(3, 1, 1)),
      "s32[1,9,9,8]");
}

TEST(ShapeConvolution, Refuses) {
  const std::vector<std::string> operands{"f32[1,9,9,4]", "f32[3,3,4,6]"};
  auto with = [&](auto change) {
    ConvolutionAttrs a = conv(3, 1, 1);
    change(a);
    return infer(Opcode::convolution, operands, a);
  };
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.feature_group_count = 2; }),
            "error: convolution: feature dims 4 and 4 x 2 groups differ (operand 1 axis 2)");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.batch_group_count = 4; }),
            "error: convolution: 6 output features do not divide into 4 groups");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.batch_group_count = 3; }),
            "error: convolution: batch 1 does not divide into 3 groups");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.feature_group_count = 0; }),
            "error: convolution: feature_group_count 0 and batch_group_count 1: one of them must "
            "be 1");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.dims.input_feature = 0; }),
            "error: convolution: input={1, 2, 0, 0} names dimension 0 twice");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.dims.kernel_spatial = {0}; }),
            "error: convolution: dim_labels name 3 kernel dimensions of 4");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.window.dims.pop_back(); }),
            "error: convolution: a window of 1 dimensions for f32[1,9,9,4]");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.window.dims[1].size = 5; }),
            "error: convolution: window size 5 and kernel dim 3 differ (operand 1 axis 1)");
  EXPECT_EQ(with([](ConvolutionAttrs& a) { a.window.dims[1].stride = 0; }),
            "error: convolution: window axis 1: size 3, stride 0, dilation 1 and 1 must be "
            "positive");
}

}  // namespace
}  // namespace heddle::hlo
