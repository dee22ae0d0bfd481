#include "stage/gemm_axis.h"

#include <algorithm>

namespace heddle::stage {

namespace {

// The rows of the tile at `start` that are inside for each element of the window; adjacent elements
// with the same rows are one segment.
std::vector<Segment> segments_at(int64_t start, int64_t rows, const Window* window,
                                 int64_t k_extent) {
  auto inside = [&](int64_t row, int64_t k) {
    int64_t at = window->stride * (start + row) + window->dilation * k + window->offset;
    return at >= 0 && at < window->span;
  };
  // Positions are linear: it is enough to check the corners.
  if (!window || (inside(0, 0) && inside(rows - 1, 0) && inside(0, k_extent - 1) &&
                  inside(rows - 1, k_extent - 1)))
    return {{0, k_extent, 0, rows}};
  std::vector<Segment> segments;
  for (int64_t k = 0; k < k_extent; ++k) {
    int64_t low = 0;
    while (low < rows && !inside(low, k)) ++low;
    int64_t high = low;
    while (high < rows && inside(high, k)) ++high;
    if (low == high) continue;
    if (!segments.empty() && segments.back().k_high == k && segments.back().row_low == low &&
        segments.back().row_high == high)
      segments.back().k_high = k + 1;
    else
      segments.push_back({k, k + 1, low, high});
  }
  return segments;
}

bool is_inside(const Run& run, int64_t k_extent) {
  return run.segments == std::vector<Segment>{{0, k_extent, 0, run.rows}};
}

// Tiles over `rows` rows from `start` on, balanced or `whole`; equal adjacent interior tiles become
// one run.
void add_tiles(int64_t start, int64_t rows, int64_t tile, const Window* window, int64_t k_extent,
               bool whole, std::vector<Run>* runs) {
  if (rows == 0) return;
  const int64_t tiles = (rows + tile - 1) / tile;
  const int64_t low = rows / tiles, tall = rows - low * tiles;
  for (int64_t i = 0; i < tiles; ++i) {
    Run run{start, 1, whole ? std::min(tile, rows - i * tile) : low + (i < tall), {}};
    run.segments = segments_at(start, run.rows, window, k_extent);
    start += run.rows;
    if (!runs->empty() && runs->back().rows == run.rows && is_inside(run, k_extent) &&
        is_inside(runs->back(), k_extent))
      ++runs->back().count;
    else
      runs->push_back(std::move(run));
  }
}

AxisPart part_of(std::vector<Run> runs) { return {1, 0, std::move(runs)}; }

}  // namespace

std::vector<AxisPart> plan_axis(int64_t extent, int64_t tile, int64_t block, const Window* window,
                                int64_t k_extent, bool whole) {
  std::vector<Run> all;
  std::vector<AxisPart> parts;
  if (block >= extent) {
    add_tiles(0, extent, tile, window, k_extent, whole, &all);
    parts.push_back(part_of(std::move(all)));
    return parts;
  }
  // Rows outside the tiles at an edge are cut into blocks.
  int64_t begin = 0, end = extent;
  if (window) {
    add_tiles(0, extent, tile, window, k_extent, whole, &all);
    auto inside = [&](const Run& run) { return is_inside(run, k_extent); };
    auto first = std::find_if(all.begin(), all.end(), inside);
    auto last = std::find_if(all.rbegin(), all.rend(), inside).base();
    if (first == all.end()) {
      parts.push_back(part_of(std::move(all)));
      return parts;
    }
    begin = first->start;
    end = (last - 1)->start + (last - 1)->rows * (last - 1)->count;
    if (first != all.begin()) parts.push_back(part_of({all.begin(), first}));
    if (last != all.end()) parts.push_back(part_of({last, all.end()}));
  }
  const int64_t blocks = (end - begin) / block, rest = (end - begin) % block;
  if (blocks) {
    AxisPart part{blocks, block, {}};
    add_tiles(begin, block, tile, nullptr, k_extent, whole, &part.runs);
    parts.insert(parts.begin(), std::move(part));
  }
  if (rest) {
    AxisPart part;
    add_tiles(begin + blocks * block, rest, tile, nullptr, k_extent, whole, &part.runs);
    parts.push_back(std::move(part));
  }
  return parts;
}

namespace {

std::vector<AxisPart> parts_of(int digit, int64_t extent, int64_t tile, int64_t block,
                               const GemmShape& shape, const Stage& stage, bool whole) {
  const Window* window = digit >= 0 ? shape.window_of(digit) : nullptr;
  const int64_t k_extent =
      window && window->k >= 0 ? stage.extents()[static_cast<size_t>(window->k)] : 1;
  return plan_axis(extent, tile, block, window, k_extent, whole);
}

}  // namespace

std::vector<AxisPart> row_parts(const Gemm& gemm, const GemmShape& shape, const Stage& stage) {
  return parts_of(shape.m, shape.m_extent, gemm.mr, gemm.m_block, shape, stage, gemm.tile);
}

std::vector<AxisPart> line_parts(const Gemm& gemm, const GemmShape& shape, const Stage& stage) {
  if (gemm.my > 1)
    return parts_of(shape.y, shape.y_extent, gemm.my, gemm.y_block, shape, stage, false);
  return plan_axis(shape.y_extent, 1, gemm.y_block, nullptr, 1);
}

int64_t count_rows(const AxisPart& part) {
  int64_t rows = 0;
  for (const Run& run : part.runs) rows += run.count * run.rows;
  return rows;
}

AxisPart retile(const AxisPart& part, int64_t tile) {
  AxisPart result{part.blocks, part.step, {}};
  add_tiles(part.runs.front().start, count_rows(part), tile, nullptr, 1, false, &result.runs);
  return result;
}

int64_t count_segments(const std::vector<AxisPart>& parts) {
  int64_t count = 0;
  for (const AxisPart& part : parts)
    for (const Run& run : part.runs) count += static_cast<int64_t>(run.segments.size());
  return count;
}

}  // namespace heddle::stage
