#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

TEST(ShapeLinalg, BatchNorm) {
  const BatchNormAttrs a{0.001, 1};
  EXPECT_EQ(infer(Opcode::batch_norm_training, {"f32[2,3,4]", "f32[3]", "f32[3]"}, a),
            "(f32[2,3,4], f32[3], f32[3])");
  EXPECT_EQ(infer(Opcode::batch_norm_inference,
                  {"bf16[2,3,4]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"}, a),
            "bf16[2,3,4]");
  EXPECT_EQ(
      infer(Opcode::batch_norm_grad, {"f32[2,3,4]", "f32[3]", "f32[3]", "f32[3]", "f32[2,3,4]"}, a),
      "(f32[2,3,4], f32[3], f32[3])");
  EXPECT_EQ(infer(Opcode::batch_norm_training, {"f32[2,3,4]", "f32[3]", "f32[4]"}, a),
            "error: batch-norm-training: dims 3 and 4 differ (operand 2 axis 0, the feature axis "
            "is 1)");
  EXPECT_EQ(
      infer(Opcode::batch_norm_training, {"f32[2,3,4]", "f32[3]", "f32[3]"}, BatchNormAttrs{0, 3}),
      "error: batch-norm-training: feature_index names dimension 3 of a rank 3 array");
  EXPECT_EQ(
      infer(Opcode::batch_norm_grad, {"f32[2,3,4]", "f32[3]", "f32[3]", "f32[3]", "f32[2,3,5]"}, a),
      "error: batch-norm-grad: operand 4 is f32[2,3,5], wanted the dimensions of f32[2,3,4]");
  EXPECT_EQ(infer(Opcode::batch_norm_training, {"s32[2,3,4]", "f32[3]", "f32[3]"}, a),
            "error: batch-norm-training: operand 0 is s32[2,3,4], wanted a float type");
}

TEST(ShapeLinalg, Cholesky) {
  EXPECT_EQ(infer(Opcode::cholesky, {"f32[2,3,3]"}, CholeskyAttrs{true}), "f32[2,3,3]");
  EXPECT_EQ(infer(Opcode::cholesky, {"f32[3,4]"}, CholeskyAttrs{}),
            "error: cholesky: operand 0 is f32[3,4], wanted square matrices");
  EXPECT_EQ(infer(Opcode::cholesky, {"f32[3]"}, CholeskyAttrs{}),
            "error: cholesky: operand 0 is f32[3], wanted square matrices");
}

TEST(ShapeLinalg, TriangularSolve) {
  TriangularSolveAttrs left{true}, right{false};
  EXPECT_EQ(infer(Opcode::triangular_solve, {"f32[2,4,4]", "f32[2,4,3]"}, left), "f32[2,4,3]");
  EXPECT_EQ(infer(Opcode::triangular_solve, {"f32[4,4]", "f32[3,4]"}, right), "f32[3,4]");
  EXPECT_EQ(infer(Opcode::triangular_solve, {"f32[4,4]", "f32[3,4]"}, left),
            "error: triangular-solve: dims 4 and 3 differ (operand 1 axis 0)");
  EXPECT_EQ(infer(Opcode::triangular_solve, {"f32[2,4,4]", "f32[3,4,4]"}, left),
            "error: triangular-solve: dims 2 and 3 differ (operand 1 axis 0)");
  EXPECT_EQ(infer(Opcode::triangular_solve, {"f32[4,4]", "f64[4,4]"}, left),
            "error: triangular-solve: types f32 and f64 differ (operands 0 and 1)");
}

TEST(ShapeLinalg, Fft) {
  using Kind = FftAttrs::Kind;
  EXPECT_EQ(infer(Opcode::fft, {"c64[2,8]"}, FftAttrs{Kind::fft, {8}}), "c64[2,8]");
  EXPECT_EQ(infer(Opcode::fft, {"c128[2,8]"}, FftAttrs{Kind::ifft, {2, 8}}), "c128[2,8]");
  EXPECT_EQ(infer(Opcode::fft, {"f32[3,9]"}, FftAttrs{Kind::rfft, {9}}), "c64[3,5]");
  EXPECT_EQ(infer(Opcode::fft, {"c128[3,5]"}, FftAttrs{Kind::irfft, {8}}), "f64[3,8]");
  EXPECT_EQ(infer(Opcode::fft, {"f32[3,9]"}, FftAttrs{Kind::rfft, {8}}),
            "error: fft: dim 9 must be 8 for length 8 (operand 0 axis 1)");
  EXPECT_EQ(infer(Opcode::fft, {"c64[3,5]"}, FftAttrs{Kind::irfft, {6}}),
            "error: fft: dim 5 must be 4 for length 6 (operand 0 axis 1)");
  EXPECT_EQ(infer(Opcode::fft, {"f32[9]"}, FftAttrs{Kind::fft, {9}}),
            "error: fft: operand 0 is f32[9], wanted a complex type");
  EXPECT_EQ(infer(Opcode::fft, {"c64[9]"}, FftAttrs{Kind::fft, {9, 9}}),
            "error: fft: fft_length={9, 9} for c64[9]: 1 to 3 of its last dimensions");
  EXPECT_EQ(infer(Opcode::fft, {"bf16[9]"}, FftAttrs{Kind::rfft, {9}}),
            "error: fft: operand 0 is bf16[9], wanted f32 or f64");
}

}  // namespace
}  // namespace heddle::hlo
