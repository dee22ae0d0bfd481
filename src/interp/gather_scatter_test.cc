#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

const char* const kMatrix = "s32[3,3] {{1,2,3},{4,5,6},{7,8,9}}";

TEST(Gather, RowsAndColumns) {
  EXPECT_EQ(run_op("gather", "s32[2,3]", {kMatrix, "s32[2] {0, 2}"},
                   "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                   "index_vector_dim=1, slice_sizes={1,3}"),
            "{ {1, 2, 3}, {7, 8, 9} }");
  EXPECT_EQ(run_op("gather", "s32[3,2]", {kMatrix, "s32[2] {0, 2}"},
                   "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, "
                   "index_vector_dim=1, slice_sizes={3,1}"),
            "{ {1, 3}, {4, 6}, {7, 9} }");
}

TEST(Gather, IndexVectorsInTheMiddleAndSwapped) {
  // Index vectors are along dimension 0; their first component is the column.
  EXPECT_EQ(run_op("gather", "s32[2]", {kMatrix, "s32[2,2] {{0, 2},{1, 2}}"},
                   "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, "
                   "index_vector_dim=0, slice_sizes={1,1}"),
            "{4, 9}");
}

TEST(Gather, StartsAreClampedSoThatTheWindowFits) {
  EXPECT_EQ(run_op("gather", "s32[3,2]", {"s32[4] {10,11,12,13}", "s32[3] {-5, 2, 9}"},
                   "offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, "
                   "index_vector_dim=1, slice_sizes={2}"),
            "{ {10, 11}, {12, 13}, {12, 13} }");
}

TEST(Gather, BatchingDimensions) {
  EXPECT_EQ(run_op("gather", "s32[3,1]", {kMatrix, "s32[3,1] {{2},{0},{1}}"},
                   "offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, "
                   "operand_batching_dims={0}, start_indices_batching_dims={0}, "
                   "index_vector_dim=1, slice_sizes={1,1}"),
            "{ {3}, {4}, {8} }");
}

std::string scatter(const std::string& combine, const std::string& x, const std::string& indices,
                    const std::string& updates, const std::string& attrs) {
  auto shape = [](const std::string& s) { return s.substr(0, s.find(' ')); };
  auto value = [](const std::string& s) { return s.substr(s.find(' ') + 1); };
  return run("f { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] " + combine +
             " }\nENTRY e { x = " + shape(x) + " constant(" + value(x) +
             ")\n i = " + shape(indices) + " constant(" + value(indices) +
             ")\n u = " + shape(updates) + " constant(" + value(updates) +
             ")\n ROOT r = " + shape(x) + " scatter(x, i, u), to_apply=f, " + attrs + " }");
}

TEST(Scatter, AddsRows) {
  EXPECT_EQ(scatter("add(a, b)", kMatrix, "s32[2] {0, 2}", "s32[2,3] {{10,20,30},{40,50,60}}",
                    "update_window_dims={1}, inserted_window_dims={0}, "
                    "scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
            "{ {11, 22, 33}, {4, 5, 6}, {47, 58, 69} }");
}

TEST(Scatter, RepeatedIndicesCombineInOrder) {
  const std::string attrs =
      "update_window_dims={}, inserted_window_dims={0}, "
      "scatter_dims_to_operand_dims={0}, index_vector_dim=1";
  EXPECT_EQ(scatter("add(a, b)", "s32[3] {0, 0, 0}", "s32[3] {1, 1, 2}", "s32[3] {3, 4, 5}", attrs),
            "{0, 7, 5}");
  // The last one wins if the update replaces the element.
  EXPECT_EQ(scatter("copy(b)", "s32[3] {0, 0, 0}", "s32[3] {1, 1, 2}", "s32[3] {3, 4, 5}", attrs),
            "{0, 4, 5}");
}

TEST(Scatter, WhatLiesOutsideIsSkipped) {
  const std::string attrs =
      "update_window_dims={1}, inserted_window_dims={}, "
      "scatter_dims_to_operand_dims={0}, index_vector_dim=1";
  EXPECT_EQ(scatter("add(a, b)", "s32[4] {0, 0, 0, 0}", "s32[2,1] {{2},{1}}",
                    "s32[2,2] {{1,2},{3,4}}", attrs),
            "{0, 3, 5, 2}");
  EXPECT_EQ(scatter("add(a, b)", "s32[4] {0, 0, 0, 0}", "s32[2,1] {{-5},{7}}",
                    "s32[2,2] {{1,2},{3,4}}", attrs),
            "{0, 0, 0, 0}");
}

TEST(Scatter, Variadic) {
  EXPECT_EQ(run(R"(
    f { a = s32[] parameter(0)
        b = f32[] parameter(1)
        c = s32[] parameter(2)
        d = f32[] parameter(3)
        s = s32[] add(a, c)
        m = f32[] maximum(b, d)
        ROOT t = (s32[], f32[]) tuple(s, m) }
    ENTRY e { x = s32[2] constant({1, 2})
              y = f32[2] constant({1, 2})
              i = s32[2] constant({1, 1})
              u = s32[2] constant({10, 20})
              v = f32[2] constant({9, 8})
              ROOT r = (s32[2], f32[2]) scatter(x, y, i, u, v), update_window_dims={},
                inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,
                to_apply=f })"),
            "({1, 32}, {1, 9})");
}

}  // namespace
}  // namespace heddle::interp
