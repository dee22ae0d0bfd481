#include "stage/window_lines.h"

#include <algorithm>

namespace heddle::stage {

namespace {

// False: a window that runs backwards, or has padding without taps.
bool read_axis(int out, const GemmShape& shape, const Stage& stage, WindowLines::Axis* axis) {
  if (out < 0) return true;
  const index::Expr& a = stage.loads[static_cast<size_t>(shape.a_load)].coordinates[0];
  const int64_t factor = a.factor_of(out);
  const Window* window = shape.window_of(out);
  if (!window) {
    axis->step = factor;
    return factor > 0;
  }
  axis->k = window->k;
  axis->stride = window->stride;
  axis->dilation = window->dilation;
  axis->offset = window->offset;
  axis->span = window->span;
  if (axis->k < 0 || axis->stride < 1 || axis->dilation < 1 || factor % axis->stride != 0)
    return false;
  axis->taps = stage.extents()[static_cast<size_t>(axis->k)];
  axis->step = factor / axis->stride;
  return axis->step > 0 && a.factor_of(axis->k) == axis->step * axis->dilation;
}

}  // namespace

int64_t WindowLines::rows_of_line() const { return runs_on() ? width() : whole_fragments(rows); }

int64_t WindowLines::sums(int64_t count) const {
  return runs_on() ? whole_fragments((count - 1) * width() + rows) : count * rows_of_line();
}

int64_t WindowLines::elements(int64_t count) const {
  const int64_t last_row =
      runs_on() ? sums(count) - 1
                : (count - 1) * down.stride * width() + (rows_of_line() - 1) * across.stride;
  const int64_t last_tap =
      (down.taps - 1) * down.dilation * width() + (across.taps - 1) * across.dilation;
  return std::max(down.reach(count) * width(), last_row + last_tap + 1) * channels;
}

int64_t WindowLines::first_inside() const {
  return across.span == 0 ? 0 : std::clamp<int64_t>(-across.offset, 0, width());
}

int64_t WindowLines::last_inside() const {
  return across.span == 0
             ? width()
             : std::clamp<int64_t>(across.span - across.offset, first_inside(), width());
}

std::optional<WindowLines> window_lines(const GemmShape& shape, const Stage& stage) {
  WindowLines lines;
  if (shape.windows.empty() || shape.m < 0) return std::nullopt;
  for (const Window& window : shape.windows)
    if (window.out < 0 || (window.out != shape.y && window.out != shape.m)) return std::nullopt;
  if (!read_axis(shape.y, shape, stage, &lines.down) ||
      !read_axis(shape.m, shape, stage, &lines.across))
    return std::nullopt;
  const index::Expr& a = stage.loads[static_cast<size_t>(shape.a_load)].coordinates[0];
  const int c = shape.k.back();
  for (int k : shape.k)
    if (k != c && k != lines.down.k && k != lines.across.k) return std::nullopt;
  if (c == lines.down.k || c == lines.across.k || a.factor_of(c) != 1) return std::nullopt;
  lines.rows = shape.m_extent;
  lines.channels = stage.extents()[static_cast<size_t>(c)];
  return lines;
}

}  // namespace heddle::stage
