#include <limits>

#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ShapeReduction, Reduce) {
  Functions f;
  Computation* add = f({"f32[]", "f32[]"}, "f32[]");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2,<=3,4]", "f32[]"}, DimensionsAttrs{{0, 2}}, {add}),
            "f32[<=3]");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2]", "f32[]"}, DimensionsAttrs{}, {add}), "f32[2]");
  Computation* argmax = f({"f32[]", "s32[]", "f32[]", "s32[]"}, "(f32[], s32[])");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2,3]", "s32[2,3]", "f32[]", "s32[]"}, DimensionsAttrs{{1}},
                  {argmax}),
            "(f32[2], s32[2])");
}

TEST(ShapeReduction, ReduceRefuses) {
  Functions f;
  Computation* add = f({"f32[]", "f32[]"}, "f32[]");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2]", "f32[]"}, DimensionsAttrs{{1}}, {add}),
            "error: reduce: dimensions names dimension 1 of a rank 1 array");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2]", "f32[]"}, DimensionsAttrs{{0, 0}}, {add}),
            "error: reduce: dimensions={0, 0} names dimension 0 twice");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2]", "f32[1]"}, DimensionsAttrs{{0}}, {add}),
            "error: reduce: operand 1 is f32[1], wanted a scalar");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2]", "s32[]"}, DimensionsAttrs{{0}}, {add}),
            "error: reduce: types f32 and s32 differ (operands 0 and 1)");
  EXPECT_EQ(infer(Opcode::reduce, {"bf16[2]", "bf16[]"}, DimensionsAttrs{{0}}, {add}),
            "error: reduce: f is (f32[], f32[]) -> f32[], wanted (bf16[], bf16[]) -> bf16[]");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2]", "f32[]"}, DimensionsAttrs{{0}}),
            "error: reduce: 0 called computations, wanted 1");
  EXPECT_EQ(infer(Opcode::reduce, {"f32[2]", "f32[3]", "f32[]", "f32[]"}, DimensionsAttrs{{0}},
                  {f({"f32[]", "f32[]", "f32[]", "f32[]"}, "(f32[], f32[])")}),
            "error: reduce: operand 1 is f32[3], wanted the dimensions of f32[2]");
}

Window window(std::vector<WindowDim> dims) { return Window{std::move(dims)}; }

TEST(ShapeReduction, ReduceWindow) {
  Functions f;
  Computation* add = f({"f32[]", "f32[]"}, "f32[]");
  auto extent = [&](const std::string& operand, WindowDim dim) {
    return infer(Opcode::reduce_window, {operand, "f32[]"}, WindowAttrs{window({dim})}, {add});
  };
  EXPECT_EQ(extent("f32[10]", {.size = 3}), "f32[8]");
  EXPECT_EQ(extent("f32[10]", {.size = 3, .stride = 2, .pad_low = 1}), "f32[5]");
  EXPECT_EQ(extent("f32[10]", {.size = 3, .lhs_dilate = 2}), "f32[17]");
  EXPECT_EQ(extent("f32[10]", {.size = 3, .rhs_dilate = 2}), "f32[6]");
  EXPECT_EQ(extent("f32[10]", {.size = 11}), "f32[0]");
  EXPECT_EQ(extent("f32[0]", {.size = 2, .pad_low = 1, .pad_high = 1, .lhs_dilate = 9}), "f32[1]");
  EXPECT_EQ(extent("f32[10]", {.size = 2, .pad_low = -20}), "f32[0]");
  EXPECT_EQ(extent("f32[<=10]", {.size = 3}), "f32[<=8]");
  EXPECT_EQ(extent("f32[10]", {.size = 0}),
            "error: reduce-window: window axis 0: size 0, stride 1, dilation 1 and 1 must be "
            "positive");
  EXPECT_EQ(extent("f32[10]", {.size = kMax, .rhs_dilate = 3}),
            "error: reduce-window: extent 9223372036854775806 * 3 overflows 64 bits");
  EXPECT_EQ(extent("f32[10]", {.pad_low = kMax}),
            "error: reduce-window: extent 10 + 9223372036854775807 overflows 64 bits");
  EXPECT_EQ(extent("f32[10,10]", {.size = 3}),
            "error: reduce-window: a window of 1 dimensions for f32[10,10]");
}

TEST(ShapeReduction, SelectAndScatter) {
  Functions f;
  Computation* ge = f({"f32[]", "f32[]"}, "pred[]");
  Computation* add = f({"f32[]", "f32[]"}, "f32[]");
  const WindowAttrs attrs{window({{.size = 2, .stride = 2}})};
  EXPECT_EQ(infer(Opcode::select_and_scatter, {"f32[8]", "f32[4]", "f32[]"}, attrs, {ge, add}),
            "f32[8]");
  EXPECT_EQ(infer(Opcode::select_and_scatter, {"f32[8]", "f32[5]", "f32[]"}, attrs, {ge, add}),
            "error: select-and-scatter: operand 1 is f32[5], the windows are f32[4]");
  EXPECT_EQ(
      infer(Opcode::select_and_scatter, {"f32[8]", "f32[4]", "f32[]"}, attrs, {add, add}),
      "error: select-and-scatter: f.1 is (f32[], f32[]) -> f32[], wanted (f32[], f32[]) -> pred[]");
}

TEST(ShapeReduction, Scan) {
  Functions f;
  ScanAttrs attrs{1, 1};
  Computation* step = f({"f32[2]", "f32[2]"}, "(f32[2], f32[2])");
  EXPECT_EQ(infer(Opcode::scan, {"f32[2,9]", "f32[2]"}, attrs, {step}), "(f32[2,9], f32[2])");
  EXPECT_EQ(infer(Opcode::scan, {"f32[2,<=9]", "f32[2]"}, attrs, {step}), "(f32[2,<=9], f32[2])");
  EXPECT_EQ(infer(Opcode::scan, {"f32[9,2]", "f32[2]"}, attrs, {step}),
            "error: scan: f is (f32[2], f32[2]) -> (f32[2], f32[2]), wanted (f32[9], f32[2]) -> "
            "(f32[2], f32[2])");
  EXPECT_EQ(infer(Opcode::scan, {"f32[2,9]"}, attrs, {step}),
            "error: scan: num_carries 1 of 1 operands leaves no array to scan");
  EXPECT_EQ(infer(Opcode::scan, {"f32[2,9]", "f32[2]"}, attrs, {f({"f32[2]", "f32[2]"}, "()")}),
            "error: scan: f.1 is (f32[2], f32[2]) -> (), wanted 1 carries in its result");
  EXPECT_EQ(infer(Opcode::scan, {"f32[2,9]", "f32[2]"}, attrs,
                  {f({"f32[2]", "f32[2]"}, "(token[], f32[2])")}),
            "error: scan: output 0 of to_apply is token[], it has no place for dimension 1");
  EXPECT_EQ(infer(Opcode::scan, {"f32[2]", "f32[2]"}, attrs,
                  {f({"f32[2]", "f32[2]"}, "(f32[], f32[2])")}),
            "error: scan: dimensions names dimension 1 of a rank 1 array");
}

TEST(ShapeReduction, Sort) {
  Functions f;
  Computation* less = f({"f32[]", "f32[]"}, "pred[]");
  EXPECT_EQ(infer(Opcode::sort, {"f32[2,3]"}, SortAttrs{1}, {less}), "f32[2,3]");
  Computation* less2 = f({"f32[]", "f32[]", "s32[]", "s32[]"}, "pred[]");
  EXPECT_EQ(infer(Opcode::sort, {"f32[3]", "s32[3]"}, SortAttrs{0}, {less2}), "(f32[3], s32[3])");
  EXPECT_EQ(infer(Opcode::sort, {"f32[3]"}, SortAttrs{1}, {less}),
            "error: sort: dimensions names dimension 1 of a rank 1 array");
  EXPECT_EQ(infer(Opcode::sort, {"f32[3]", "s32[4]"}, SortAttrs{0}, {less2}),
            "error: sort: operand 1 is s32[4], wanted the dimensions of f32[3]");
}

TEST(ShapeReduction, TopK) {
  EXPECT_EQ(infer(Opcode::topk, {"bf16[4,9]"}, TopKAttrs{3}), "(bf16[4,3], s32[4,3])");
  EXPECT_EQ(infer(Opcode::topk, {"bf16[4,9]"}, TopKAttrs{10}),
            "error: topk: k 10 of dim 9 (operand 0 axis 1)");
  EXPECT_EQ(infer(Opcode::topk, {"f32[]"}, TopKAttrs{1}),
            "error: topk: operand 0 is f32[], wanted rank 1 or more");
}

}  // namespace
}  // namespace heddle::hlo
