#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

TEST(Dot, MatrixVectorAndOuter) {
  EXPECT_EQ(
      run_op("dot", "s32[2,2]", {"s32[2,3] {{1,2,3},{4,5,6}}", "s32[3,2] {{1,2},{3,4},{5,6}}"},
             "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
      "{ {22, 28}, {49, 64} }");
  EXPECT_EQ(run_op("dot", "s32[2]", {"s32[2,3] {{1,2,3},{4,5,6}}", "s32[3] {1,0,-1}"},
                   "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "{-2, -2}");
  EXPECT_EQ(run_op("dot", "f32[2,3]", {"f32[2] {1,2}", "f32[3] {3,4,5}"}),
            "{ {3, 4, 5}, {6, 8, 10} }");
}

TEST(Dot, BatchesAndSeveralContractingDimensions) {
  EXPECT_EQ(run_op("dot", "s32[2,1,2]",
                   {"s32[1,2,2] {{{1,2},{3,4}}}", "s32[2,2,2] {{{1,2},{3,4}},{{5,6},{7,8}}}"},
                   "lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
                   "rhs_contracting_dims={1}"),
            "{ { {7, 10} }, { {43, 50} } }");
  EXPECT_EQ(run_op("dot", "s32[]", {"s32[2,3] {{1,2,3},{4,5,6}}", "s32[3,2] {{1,2},{3,4},{5,6}}"},
                   "lhs_contracting_dims={1,0}, rhs_contracting_dims={0,1}"),
            "86");
  EXPECT_EQ(run_op("dot", "f32[2,2]", {"f32[2,0] {{},{}}", "f32[0,2] {}"},
                   "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "{ {0, 0}, {0, 0} }");
}

TEST(Dot, NarrowTypesAccumulateWideAndRoundOnce) {
  const std::string attrs = "lhs_contracting_dims={0}, rhs_contracting_dims={0}";
  // 256 + 1 + 1 + 1: each 1 alone would be lost in bf16.
  EXPECT_EQ(run_op("dot", "bf16[]", {"bf16[4] {256,1,1,1}", "bf16[4] {1,1,1,1}"}, attrs), "260");
  EXPECT_EQ(run_op("dot", "f32[]", {"bf16[2] {256,1}", "bf16[2] {1,1}"}, attrs), "257");
  EXPECT_EQ(run_op("dot", "s32[]", {"s8[2] {127,127}", "s8[2] {127,127}"}, attrs), "32258");
  EXPECT_EQ(run_op("dot", "s8[]", {"s8[2] {127,127}", "s8[2] {127,127}"}, attrs), "2");
  EXPECT_EQ(run_op("dot", "f32[]", {"f8e4m3fn[2] {448,1}", "f8e5m2[2] {2,0.25}"}, attrs), "896.25");
  EXPECT_EQ(run_op("dot", "pred[]", {"pred[2] {1,1}", "pred[2] {1,1}"}, attrs), "true");
  // In f32 the 1 is lost, in f64 it is not.
  EXPECT_EQ(run_op("dot", "f32[]", {"f32[3] {16777216,1,-16777216}", "f32[3] {1,1,1}"}, attrs),
            "0");
  EXPECT_EQ(run_op("dot", "f32[]", {"f32[3] {16777216,1,-16777216}", "f32[3] {1,1,1}"}, attrs,
                   {.widen = true}),
            "1");
}

TEST(Dot, Complex) {
  EXPECT_EQ(run_op("dot", "c64[]", {"c64[2] {(1,1),(0,2)}", "c64[2] {(1,-1),(0,1)}"},
                   "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            "(0, 0)");
}

TEST(ScaledDot, MultipliesBlocksByTheirScales) {
  EXPECT_EQ(run_op("scaled-dot", "f32[1,1]",
                   {"f8e4m3fn[1,4] {{1,2,3,4}}", "f8e4m3fn[4,1] {{1},{1},{1},{1}}",
                    "f8e8m0fnu[1,2] {{2, 0.5}}", "f8e8m0fnu[2,1] {{1},{4}}"},
                   "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "{ {20} }");
}

TEST(RaggedDot, GroupsOfRowsUseTheirOwnMatrix) {
  // Row 0 times matrix 0, rows 1 and 2 times matrix 1, row 3 is in no group.
  EXPECT_EQ(run_op("ragged-dot", "s32[4,1]",
                   {"s32[4,2] {{1,2},{3,4},{5,6},{7,8}}", "s32[2,2,1] {{{1},{1}},{{10},{100}}}",
                    "s32[2] {1,2}"},
                   "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
                   "rhs_group_dims={0}"),
            "{ {3}, {430}, {650}, {0} }");
}

TEST(RaggedDot, GroupsOfTheSumGiveOneResultEach) {
  EXPECT_EQ(run_op("ragged-dot", "s32[2,1,1]",
                   {"s32[1,4] {{1,2,3,4}}", "s32[4,1] {{1},{10},{100},{1000}}", "s32[2] {1,3}"},
                   "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, "
                   "rhs_group_dims={}"),
            "{ { {1} }, { {4320} } }");
}

}  // namespace
}  // namespace heddle::interp
