// A convolution with a matrix instruction, which needs a constant stride between rows over a whole
// block of lines: it reads a copy of the lines in scratch, padded with zeros.
//
//   for (image, block of lines, several panels):
//     copy the lines that the block's window meets
//     for each panel:
//       for 32 rows: fragments, as in gemm_fragments.cc, left in scratch
//       for each line and row: its epilogue
//
// With stride 1 the rows of a line continue into the next: the rows between two lines are computed
// too, but not finished. With another stride each line begins a tile.
#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

using stage::WindowLines;

void GemmEmitter::emit_lines(int64_t full, int64_t rest, std::vector<kernel::Group>* groups) {
  const WindowLines& all = *window_lines_;
  const Type type = gemm_.tile->a;
  lines_ = k_.add_scratch("lines", type, all.elements(gemm_.y_block));
  sums_ = k_.add_scratch("sums", shape_.type, all.sums(gemm_.y_block) * width_);
  a_ = lines_;
  const int c = shape_.k.back();
  a_at_ = Expr::digit(c) * word_ + Expr::digit(shape_.m) * (all.across.stride * all.channels);
  if (shape_.y >= 0)
    a_at_ = a_at_ + Expr::digit(shape_.y) * (all.down.stride * all.width() * all.channels);
  if (all.across.k >= 0)
    a_at_ = a_at_ + Expr::digit(all.across.k) * (all.across.dilation * all.channels);
  if (all.down.k >= 0)
    a_at_ = a_at_ + Expr::digit(all.down.k) * (all.down.dilation * all.width() * all.channels);
  const int64_t together = std::max<int64_t>(1, gemm_.panels);
  for (const AxisPart& lines : line_parts(gemm_, shape_, stage_)) {
    if (const int64_t tasks = full / together)
      groups->push_back(lines_group(lines, tasks, together, 0, width_));
    if (const int64_t left = full % together)
      groups->push_back(lines_group(lines, 1, left, full - left, width_));
    if (rest) groups->push_back(lines_group(lines, 1, 1, full, rest));
  }
}

kernel::Group GemmEmitter::lines_group(const AxisPart& lines, int64_t tasks, int64_t panels,
                                       int64_t first_panel, int64_t width) {
  kernel::Group group;
  digits_.assign(extents_.size(), Expr(0));
  Expr block, task;
  if (gemm_.panels_first) add_grid(&group, "panels_of", tasks, &task);
  for (int d : shape_.batch) add_grid(&group, stage_.out[d].name, extents_[d], &digits_[d]);
  if (lines.blocks > 1) add_grid(&group, "lines_of", lines.blocks, &block);
  if (!gemm_.panels_first) add_grid(&group, "panels_of", tasks, &task);
  const Expr y0 = block * lines.step + Expr(lines.runs.front().start);
  const int64_t count = count_rows(lines);
  copy_lines(y0, count, &group.body);
  auto panel_at = [&](const Expr& number, Block* body) {
    Panel panel{Expr(first_panel) + task * panels + number, width,
                static_cast<int>((width + gemm_.lanes - 1) / gemm_.lanes)};
    if (gemm_.copy_b) copy_panel(panel, body);
    multiply_lines(panel, y0, count, body);
  };
  if (panels == 1) {
    panel_at(Expr(0), &group.body);
    return group;
  }
  VarId var = k_.add_var("panel_of");
  Block body;
  panel_at(Expr::digit(s_.add_scope(var, panels)), &body);
  group.body.push_back(make_loop(LoopKind::serial, var, k_.constant(panels), std::move(body)));
  return group;
}

// Copies the lines that the windows of the `count` lines from `y0` on read, with zeros outside the
// image.
void GemmEmitter::copy_lines(const Expr& y0, int64_t count, Block* block) {
  const WindowLines& all = *window_lines_;
  const int64_t line = all.width() * all.channels, lines = all.down.reach(count);
  const int64_t lanes = 64 / tensor::type_bytes(gemm_.tile->a);
  const ExprId nothing = zero(gemm_.tile->a);
  // Fills elements [at, at + n) of scratch with those from `from` on, or with zeros.
  auto run = [&](const Expr& at, int64_t n, const std::optional<Expr>& from, Block* body) {
    if (n <= 0) return;
    const VarId l = k_.add_var("l");
    const Expr lane = Expr::digit(s_.add_scope(l, n));
    const ExprId value = from ? k_.load(input_of(shape_.a_load), {index(*from + lane)}) : nothing;
    body->push_back(make_loop(LoopKind::vector, l, k_.constant(n),
                              {make_store(lines_, {index(at + lane)}, value)},
                              static_cast<int>(lanes)));
  };
  const VarId u = k_.add_var("u");
  const Expr number = Expr::digit(s_.add_scope(u, lines));
  const Expr place = number * line;
  std::vector<Expr> saved = digits_;
  for (int k : shape_.k) digits_[k] = Expr(0);
  digits_[shape_.m] = Expr(0);
  if (shape_.y >= 0) digits_[shape_.y] = y0;
  const Expr first = operand(shape_.a_load) + number * all.down.step;
  digits_ = std::move(saved);
  Block inside;
  const int64_t low = all.first_inside(), high = all.last_inside();
  run(place, low * all.channels, {}, &inside);
  if (all.across.step == all.channels) {
    run(place + Expr(low * all.channels), (high - low) * all.channels,
        first + Expr(low * all.across.step), &inside);
  } else if (high > low) {
    const VarId w = k_.add_var("w");
    const Expr pixel = Expr(low) + Expr::digit(s_.add_scope(w, high - low));
    Block one;
    run(place + pixel * all.channels, all.channels, first + pixel * all.across.step, &one);
    inside.push_back(make_loop(LoopKind::serial, w, k_.constant(high - low), std::move(one)));
  }
  run(place + Expr(high * all.channels), (all.width() - high) * all.channels, {}, &inside);
  if (all.down.span > 0) {
    Block outside;
    run(place, line, {}, &outside);
    const ExprId at = index(y0 * all.down.stride + number + Expr(all.down.offset));
    const ExprId is_inside = k_.binary(Op::and_, k_.compare(Op::ge, at, k_.constant(0)),
                                       k_.compare(Op::lt, at, k_.constant(all.down.span)));
    inside = {make_if(is_inside, std::move(inside), std::move(outside))};
  }
  block->push_back(make_loop(LoopKind::serial, u, k_.constant(lines), std::move(inside)));
  // Padding rows of the last tile.
  run(Expr(lines * line), all.elements(count) - lines * line, {}, block);
}

void GemmEmitter::multiply_lines(const Panel& panel, const Expr& y0, int64_t count, Block* block) {
  const WindowLines& all = *window_lines_;
  const Run run{0, 1, gemm_.mr, {{0, all.across.taps, 0, gemm_.mr}}};
  auto tiles = [&](const Expr& line, const Expr& start, int64_t rows, Block* body) {
    int64_t number = 0;
    if (shape_.y >= 0) digits_[shape_.y] = line;
    auto tile_at = [&](const Expr& m, const Expr& of, int64_t here, Block* to) {
      Tile tile{nullptr, &run, line, m, of, {}};
      tile.fragment_rows = stage::whole_fragments(here) / stage::kFragmentSide;
      sum_fragments(panel, tile, start + m * width_, to);
    };
    if (const int64_t whole = rows / gemm_.mr) {
      const VarId var = k_.add_var("tile");
      const Expr i = Expr::digit(s_.add_scope(var, whole));
      Block inner;
      tile_at(i * gemm_.mr, i, gemm_.mr, &inner);
      body->push_back(make_loop(LoopKind::serial, var, k_.constant(whole), std::move(inner)));
      number = whole;
    }
    if (const int64_t left = rows % gemm_.mr)
      tile_at(Expr(number * gemm_.mr), Expr(number), left, body);
  };
  const VarId line = k_.add_var("line");
  const Expr y = Expr::digit(s_.add_scope(line, count));
  if (all.runs_on()) {
    tiles(Expr(0), Expr(0), (count - 1) * all.rows_of_line() + shape_.m_extent, block);
  } else {
    Block body;
    tiles(y, y * (all.rows_of_line() * width_), shape_.m_extent, &body);
    block->push_back(make_loop(LoopKind::serial, line, k_.constant(count), std::move(body)));
  }
  const VarId finished_line = k_.add_var("line");
  const Expr done = Expr::digit(s_.add_scope(finished_line, count));
  if (shape_.y >= 0) digits_[shape_.y] = y0 + done;
  const Run whole_line{0, 1, shape_.m_extent, {}};
  Block rows;
  emit_rows(panel, {nullptr, &whole_line, y0 + done, Expr(0), Expr(0), {}},
            done * (all.rows_of_line() * width_), &rows);
  block->push_back(make_loop(LoopKind::serial, finished_line, k_.constant(count), std::move(rows)));
  if (shape_.y >= 0) digits_[shape_.y] = Expr(0);
}

}  // namespace heddle::stitch
