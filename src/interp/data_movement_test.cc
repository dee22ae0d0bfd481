#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

TEST(DataMovement, Broadcast) {
  EXPECT_EQ(run_op("broadcast", "s32[2,3]", {"s32[3] {1, 2, 3}"}, "dimensions={1}"),
            "{ {1, 2, 3}, {1, 2, 3} }");
  EXPECT_EQ(run_op("broadcast", "s32[3,2]", {"s32[3] {1, 2, 3}"}, "dimensions={0}"),
            "{ {1, 1}, {2, 2}, {3, 3} }");
  EXPECT_EQ(run_op("broadcast", "pred[2]", {"pred[] true"}, "dimensions={}"), "{1, 1}");
}

TEST(DataMovement, ReshapeAndTranspose) {
  EXPECT_EQ(run_op("reshape", "s32[3,2]", {"s32[2,3] {{1,2,3},{4,5,6}}"}),
            "{ {1, 2}, {3, 4}, {5, 6} }");
  EXPECT_EQ(run_op("reshape", "s32[]", {"s32[1,1] {{7}}"}), "7");
  EXPECT_EQ(run_op("transpose", "s32[3,2]", {"s32[2,3] {{1,2,3},{4,5,6}}"}, "dimensions={1,0}"),
            "{ {1, 4}, {2, 5}, {3, 6} }");
  EXPECT_EQ(run_op("transpose", "s8[2,1,2]", {"s8[1,2,2] {{{1,2},{3,4}}}"}, "dimensions={2,0,1}"),
            "{ { {1, 3} }, { {2, 4} } }");
}

TEST(DataMovement, BitcastReadsTheLayout) {
  EXPECT_EQ(run_op("bitcast", "s32[6]", {"s32[2,3] {{1,2,3},{4,5,6}}"}), "{1, 2, 3, 4, 5, 6}");
  EXPECT_EQ(run(R"(
    x = s32[2,3]{0,1} constant({{1,2,3},{4,5,6}})
    ROOT r = s32[3,2]{1,0} bitcast(x))"),
            "{ {1, 4}, {2, 5}, {3, 6} }");
  EXPECT_EQ(run(R"(
    x = f32[2]{0} constant({1, -1})
    ROOT r = u32[2]{0} bitcast(x))"),
            "{1065353216, 3212836864}");
}

TEST(DataMovement, Slice) {
  EXPECT_EQ(run_op("slice", "s32[2,2]", {"s32[3,4] {{0,1,2,3},{4,5,6,7},{8,9,10,11}}"},
                   "slice={[1:3], [0:4:2]}"),
            "{ {4, 6}, {8, 10} }");
  EXPECT_EQ(run_op("slice", "s32[0]", {"s32[2] {1,2}"}, "slice={[2:2]}"), "{}");
}

TEST(DataMovement, Pad) {
  EXPECT_EQ(run_op("pad", "s32[8]", {"s32[3] {1, 2, 3}", "s32[] 9"}, "padding=1_2_1"),
            "{9, 1, 9, 2, 9, 3, 9, 9}");
  EXPECT_EQ(run_op("pad", "s32[1]", {"s32[3] {1, 2, 3}", "s32[] 9"}, "padding=-1_-1"), "{2}");
  // The front cut is in the middle of the padding between elements.
  EXPECT_EQ(run_op("pad", "s32[5]", {"s32[3] {1, 2, 3}", "s32[] 9"}, "padding=-2_0_2"),
            "{9, 2, 9, 9, 3}");
  EXPECT_EQ(run_op("pad", "s32[5]", {"s32[3] {1, 2, 3}", "s32[] 9"}, "padding=0_-2_2"),
            "{1, 9, 9, 2, 9}");
  EXPECT_EQ(run_op("pad", "s32[2,3]", {"s32[1,1] {{5}}", "s32[] 0"}, "padding=1_0x1_1"),
            "{ {0, 0, 0}, {0, 5, 0} }");
  EXPECT_EQ(run_op("pad", "s32[2]", {"s32[0] {}", "s32[] 4"}, "padding=1_1"), "{4, 4}");
}

TEST(DataMovement, ConcatenateReverseIota) {
  EXPECT_EQ(run_op("concatenate", "s32[2,3]", {"s32[2,1] {{1},{2}}", "s32[2,2] {{3,4},{5,6}}"},
                   "dimensions={1}"),
            "{ {1, 3, 4}, {2, 5, 6} }");
  EXPECT_EQ(run_op("reverse", "s32[2,3]", {"s32[2,3] {{1,2,3},{4,5,6}}"}, "dimensions={0,1}"),
            "{ {6, 5, 4}, {3, 2, 1} }");
  EXPECT_EQ(run_op("iota", "bf16[2,3]", {}, "iota_dimension=1"), "{ {0, 1, 2}, {0, 1, 2} }");
  EXPECT_EQ(run_op("iota", "u2[5]", {}, "iota_dimension=0"), "{0, 1, 2, 3, 0}");
  EXPECT_EQ(run_op("iota", "c64[2]", {}, "iota_dimension=0"), "{(0, 0), (1, 0)}");
}

TEST(DataMovement, DynamicSlicesAreClamped) {
  const std::string x = "s32[4] {10, 11, 12, 13}";
  auto slice = [&](const std::string& start) {
    return run_op("dynamic-slice", "s32[2]", {x, start}, "dynamic_slice_sizes={2}");
  };
  EXPECT_EQ(slice("s32[] 1"), "{11, 12}");
  EXPECT_EQ(slice("s32[] 9"), "{12, 13}");
  EXPECT_EQ(slice("s32[] -3"), "{10, 11}");
  EXPECT_EQ(slice("u64[] 18446744073709551615"), "{12, 13}");
  auto update = [&](const std::string& start) {
    return run_op("dynamic-update-slice", "s32[4]", {x, "s32[2] {0, 1}", start});
  };
  EXPECT_EQ(update("s32[] 1"), "{10, 0, 1, 13}");
  EXPECT_EQ(update("s8[] 100"), "{10, 11, 0, 1}");
  EXPECT_EQ(update("s32[] -1"), "{0, 1, 12, 13}");
}

TEST(DataMovement, DimensionSizes) {
  EXPECT_EQ(run_op("get-dimension-size", "s32[]", {"f32[2,5] {{1,2,3,4,5},{1,2,3,4,5}}"},
                   "dimensions={1}"),
            "5");
  EXPECT_EQ(run_op("set-dimension-size", "f32[<=2]", {"f32[2] {1,2}", "s32[] 2"}, "dimensions={0}"),
            "{1, 2}");
  EXPECT_EQ(run_op("set-dimension-size", "f32[<=2]", {"f32[2] {1,2}", "s32[] 1"}, "dimensions={0}")
                .substr(0, 5),
            "error");
}

}  // namespace
}  // namespace heddle::interp
