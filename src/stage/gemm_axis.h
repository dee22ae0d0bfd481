// Tiles along one axis of rows of a GEMM, where a window may leave the input at both ends: each
// tile at an edge is separate, with the rows that take part for each range of the window; interior
// tiles form runs of equal tiles without guards.
#pragma once

#include <cstdint>
#include <vector>

#include "stage/gemm_shape.h"

namespace heddle::stage {

// Rows [row_low, row_high) of a tile take part for window elements [k_low, k_high).
struct Segment {
  int64_t k_low = 0, k_high = 1, row_low = 0, row_high = 1;
  bool operator==(const Segment&) const = default;
};

// `count` tiles of `rows` rows each, from row `start` on.
struct Run {
  int64_t start = 0, count = 1, rows = 1;
  std::vector<Segment> segments;  // empty: no row takes part
  bool operator==(const Run&) const = default;
};

// Tasks of one kind: `blocks` of them, each with the runs shifted by `step` rows.
struct AxisPart {
  int64_t blocks = 1, step = 0;
  std::vector<Run> runs;
};

// The parts that cover [0, extent) in balanced tiles of at most `tile` rows (`whole`: in tiles of
// `tile` rows, and one of the rest), with blocks of `block` rows away from the edges. `window` may
// be null; `k_extent` is the extent of its reduced digit.
std::vector<AxisPart> plan_axis(int64_t extent, int64_t tile, int64_t block, const Window* window,
                                int64_t k_extent, bool whole = false);
// The axes of a shape under a record: rows of a line, and lines (if a tile has several).
std::vector<AxisPart> row_parts(const Gemm& gemm, const GemmShape& shape, const Stage& stage);
std::vector<AxisPart> line_parts(const Gemm& gemm, const GemmShape& shape, const Stage& stage);
// The number of rows in a block of a part.
int64_t count_rows(const AxisPart& part);
// The same blocks of rows, in other tiles and without a window.
AxisPart retile(const AxisPart& part, int64_t tile);
int64_t count_segments(const std::vector<AxisPart>& parts);

}  // namespace heddle::stage
