#include <limits>

#include "hlo/shape_rules.h"
#include "hlo/shape_test_util.h"

namespace heddle::hlo {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ShapeSlicing, Slice) {
  EXPECT_EQ(infer(Opcode::slice, {"f32[10,5]"}, SliceAttrs{{1, 0}, {8, 5}, {3, 1}}), "f32[3,5]");
  EXPECT_EQ(infer(Opcode::slice, {"f32[10]"}, SliceAttrs{{4}, {4}, {1}}), "f32[0]");
  EXPECT_EQ(infer(Opcode::slice, {"f32[<=10,<=5]"}, SliceAttrs{{0, 1}, {10, 2}, {1, 1}}),
            "f32[<=10,1]");
  EXPECT_EQ(infer(Opcode::slice, {"f32[10]"}, SliceAttrs{{0}, {10}, {kMax}}), "f32[1]");
}

TEST(ShapeSlicing, SliceRefuses) {
  EXPECT_EQ(infer(Opcode::slice, {"f32[10]"}, SliceAttrs{{0}, {11}, {1}}),
            "error: slice: [0:11:1] of 10 (operand 0 axis 0)");
  EXPECT_EQ(infer(Opcode::slice, {"f32[10]"}, SliceAttrs{{3}, {2}, {1}}),
            "error: slice: [3:2:1] of 10 (operand 0 axis 0)");
  EXPECT_EQ(infer(Opcode::slice, {"f32[10]"}, SliceAttrs{{-1}, {2}, {1}}),
            "error: slice: [-1:2:1] of 10 (operand 0 axis 0)");
  EXPECT_EQ(infer(Opcode::slice, {"f32[10]"}, SliceAttrs{{0}, {2}, {0}}),
            "error: slice: [0:2:0] of 10 (operand 0 axis 0)");
  EXPECT_EQ(infer(Opcode::slice, {"f32[10,2]"}, SliceAttrs{{0}, {2}, {1}}),
            "error: slice: 1 starts, 1 limits and 1 strides for f32[10,2]");
}

TEST(ShapeSlicing, SymbolsSurviveWholeSlicesOnly) {
  Dim n(8);
  n.dynamic = true;
  n.symbol = "n";
  const Shape x(Type::f32, {n});
  const Shape* operand = &x;
  auto whole = infer_shape(Opcode::slice, {&operand, 1}, SliceAttrs{{0}, {8}, {1}}, {});
  auto part = infer_shape(Opcode::slice, {&operand, 1}, SliceAttrs{{0}, {5}, {1}}, {});
  ASSERT_TRUE(whole && part);
  EXPECT_EQ(whole->dims()[0], n);
  EXPECT_EQ(part->dims()[0].symbol, "");
  EXPECT_TRUE(part->dims()[0].dynamic);
}

TEST(ShapeSlicing, Pad) {
  EXPECT_EQ(infer(Opcode::pad, {"f32[3,4]", "f32[]"}, PadAttrs{{1, -1}, {2, 0}, {0, 2}}),
            "f32[6,9]");
  EXPECT_EQ(infer(Opcode::pad, {"f32[0]", "f32[]"}, PadAttrs{{1}, {1}, {5}}), "f32[2]");
  EXPECT_EQ(infer(Opcode::pad, {"f32[<=3]", "f32[]"}, PadAttrs{{1}, {0}, {0}}), "f32[<=4]");
  EXPECT_EQ(infer(Opcode::pad, {"f32[3]", "f32[]"}, PadAttrs{{-4}, {0}, {0}}),
            "error: pad: padding -4_0 takes more than dim 3 has (axis 0)");
  EXPECT_EQ(infer(Opcode::pad, {"f32[3]", "f32[]"}, PadAttrs{{0}, {0}, {-1}}),
            "error: pad: interior padding -1 is negative (axis 0)");
  EXPECT_EQ(infer(Opcode::pad, {"f32[3]", "s32[]"}, PadAttrs{{0}, {0}, {0}}),
            "error: pad: types f32 and s32 differ (operands 0 and 1)");
  EXPECT_EQ(infer(Opcode::pad, {"f32[3]", "f32[1]"}, PadAttrs{{0}, {0}, {0}}),
            "error: pad: operand 1 is f32[1], wanted a scalar");
  EXPECT_EQ(infer(Opcode::pad, {"f32[3]", "f32[]"}, PadAttrs{{kMax}, {0}, {0}}),
            "error: pad: extent 3 + 9223372036854775807 overflows 64 bits");
  EXPECT_EQ(infer(Opcode::pad, {"f32[4]", "f32[]"}, PadAttrs{{0}, {0}, {kMax}}),
            "error: pad: extent 3 * 9223372036854775807 overflows 64 bits");
}

TEST(ShapeSlicing, DynamicSlice) {
  EXPECT_EQ(infer_as("f32[2,5]", Opcode::dynamic_slice, {"f32[10,5]", "s32[]", "s32[]"},
                     DynamicSliceAttrs{{2, 5}}),
            "f32[2,5]");
  EXPECT_EQ(infer(Opcode::dynamic_slice, {"f32[10,5]", "s32[2]"}, DynamicSliceAttrs{{2, 5}}),
            "f32[2,5]");
  EXPECT_EQ(
      infer(Opcode::dynamic_slice, {"f32[10,<=5]", "s32[]", "s32[]"}, DynamicSliceAttrs{{2, 5}}),
      "f32[2,<=5]");
  EXPECT_EQ(infer(Opcode::dynamic_slice, {"f32[10]", "s32[]"}, DynamicSliceAttrs{{11}}),
            "error: dynamic-slice: slice size 11 of dim 10 (operand 0 axis 0)");
  EXPECT_EQ(infer(Opcode::dynamic_slice, {"f32[10,5]", "s32[]"}, DynamicSliceAttrs{{2, 5}}),
            "error: dynamic-slice: 1 start indices, wanted 2");
  EXPECT_EQ(infer(Opcode::dynamic_slice, {"f32[10]", "f32[]"}, DynamicSliceAttrs{{2}}),
            "error: dynamic-slice: operand 1 is f32[], wanted an integer type");
}

TEST(ShapeSlicing, DynamicUpdateSlice) {
  EXPECT_EQ(infer(Opcode::dynamic_update_slice, {"f32[10,5]", "f32[2,5]", "s32[]", "s32[]"}),
            "f32[10,5]");
  EXPECT_EQ(infer(Opcode::dynamic_update_slice, {"f32[]", "f32[]"}), "f32[]");
  EXPECT_EQ(infer(Opcode::dynamic_update_slice, {"f32[10]", "f32[11]", "s32[]"}),
            "error: dynamic-update-slice: update dim 11 is larger than dim 10 (operand 1 axis 0)");
  EXPECT_EQ(infer(Opcode::dynamic_update_slice, {"f32[10]", "f32[1,1]", "s32[]"}),
            "error: dynamic-update-slice: operand 1 is f32[1,1], wanted rank 1");
}

GatherAttrs rows() {  // whole rows of a matrix
  GatherAttrs a;
  a.offset_dims = {1};
  a.collapsed_slice_dims = {0};
  a.start_index_map = {0};
  a.slice_sizes = {1, 5};
  a.index_vector_dim = 1;
  return a;
}

TEST(ShapeSlicing, Gather) {
  EXPECT_EQ(infer(Opcode::gather, {"f32[10,5]", "s32[7]"}, rows()), "f32[7,5]");
  EXPECT_EQ(infer(Opcode::gather, {"f32[10,5]", "s32[<=7,1]"}, rows()), "f32[<=7,5]");
  EXPECT_EQ(infer(Opcode::gather, {"f32[10,<=5]", "s32[7]"}, rows()), "f32[7,<=5]");
  GatherAttrs a;  // one element each, with batching
  a.start_index_map = {1};
  a.collapsed_slice_dims = {1};
  a.operand_batching_dims = {0};
  a.start_indices_batching_dims = {0};
  a.slice_sizes = {1, 1};
  a.index_vector_dim = 2;
  EXPECT_EQ(infer(Opcode::gather, {"f32[3,9]", "s32[3,4]"}, a), "f32[3,4]");
  EXPECT_EQ(infer(Opcode::gather, {"f32[3,9]", "s32[2,4]"}, a),
            "error: gather: batching dims 3 and 2 differ (operand 0 axis 0, indices axis 0)");
}

TEST(ShapeSlicing, GatherRefuses) {
  const std::vector<std::string> operands{"f32[10,5]", "s32[7]"};
  auto with = [&](auto change) {
    GatherAttrs a = rows();
    change(a);
    return infer(Opcode::gather, operands, a);
  };
  EXPECT_EQ(with([](GatherAttrs& a) { a.index_vector_dim = 2; }),
            "error: gather: index_vector_dim 2 is outside the indices s32[7]");
  EXPECT_EQ(with([](GatherAttrs& a) { a.start_index_map = {0, 1}; }),
            "error: gather: start_index_map={0, 1} has 2 entries, index vectors have 1");
  EXPECT_EQ(with([](GatherAttrs& a) { a.offset_dims = {2}; }),
            "error: gather: offset_dims names dimension 2 of a rank 2 array");
  EXPECT_EQ(with([](GatherAttrs& a) { a.slice_sizes = {1, 6}; }),
            "error: gather: slice size 6 of dim 5 (operand 0 axis 1)");
  EXPECT_EQ(with([](GatherAttrs& a) { a.slice_sizes = {2, 5}; }),
            "error: gather: slice size 2 of dim 10 (operand 0 axis 0); it is collapsed and must "
            "be 1");
  EXPECT_EQ(with([](GatherAttrs& a) { a.collapsed_slice_dims = {}; }),
            "error: gather: slice_sizes={1, 5} and 1 offset, collapsed and batching dims for "
            "f32[10,5]");
  EXPECT_EQ(infer(Opcode::gather, {"f32[10,5]", "f32[7]"}, rows()),
            "error: gather: operand 1 is f32[7], wanted an integer type");
}

ScatterAttrs row_updates() {
  ScatterAttrs a;
  a.update_window_dims = {1};
  a.inserted_window_dims = {0};
  a.scatter_dims_to_operand_dims = {0};
  a.index_vector_dim = 1;
  return a;
}

TEST(ShapeSlicing, Scatter) {
  Functions f;
  Computation* one = f({"f32[]", "f32[]"}, "f32[]");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[7]", "f32[7,5]"}, row_updates(), {one}),
            "f32[10,5]");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[7,1]", "f32[7,4]"}, row_updates(), {one}),
            "f32[10,5]");
  Computation* two = f({"f32[]", "s32[]", "f32[]", "s32[]"}, "(f32[], s32[])");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[10,5]", "s32[7]", "f32[7,5]", "s32[7,5]"},
                  row_updates(), {two}),
            "(f32[10,5], s32[10,5])");
}

TEST(ShapeSlicing, ScatterRefuses) {
  Functions f;
  Computation* one = f({"f32[]", "f32[]"}, "f32[]");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[7]", "f32[7,6]"}, row_updates(), {one}),
            "error: scatter: update dim 6 is larger than dim 5 (operand 2 axis 1)");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[7]", "f32[8,5]"}, row_updates(), {one}),
            "error: scatter: dims 8 and 7 differ (operand 2 axis 0 and the indices)");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[7]", "f32[7]"}, row_updates(), {one}),
            "error: scatter: operand 2 is f32[7], wanted rank 2");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[7]", "s32[7,5]"}, row_updates(), {one}),
            "error: scatter: types f32 and s32 differ (operands 0 and 2)");
  EXPECT_EQ(infer(Opcode::scatter, {"f32[9]", "f32[10,5]", "s32[7]", "f32[7,5]"}, row_updates(),
                  {f({"f32[]", "f32[]", "f32[]", "f32[]"}, "(f32[], f32[])")}),
            "error: scatter: 4 operands, wanted n inputs, the indices and n updates");
  ScatterAttrs a = row_updates();
  a.inserted_window_dims = {};
  EXPECT_EQ(infer(Opcode::scatter, {"f32[10,5]", "s32[7]", "f32[7,5]"}, a, {one}),
            "error: scatter: update_window_dims={1} spans 1 dimensions, windows of f32[10,5] have "
            "2");
}

}  // namespace
}  // namespace heddle::hlo
