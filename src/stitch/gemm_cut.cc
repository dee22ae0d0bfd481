// K in blocks: tasks of several panels, with the sums in scratch between blocks of K. The order of
// summation does not change: a convolution is blocked along its outermost digit of k, the window's
// lines.
#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

// Tasks over (batch, rows, several panels): in each, the blocks of K one after the other.
void GemmEmitter::emit_cut(int64_t full, int64_t rest, std::vector<kernel::Group>* groups) {
  const std::vector<AxisPart> line_blocks = line_parts(gemm_, shape_, stage_);
  const std::vector<AxisPart> row_blocks = row_parts(gemm_, shape_, stage_);
  auto most = [](const std::vector<AxisPart>& parts, auto of) {
    int64_t result = 0;
    for (const AxisPart& part : parts) result = std::max<int64_t>(result, of(part));
    return result;
  };
  auto tiles = [](const AxisPart& part) {
    int64_t result = 0;
    for (const Run& run : part.runs) result += run.count;
    return result;
  };
  // Rows stand side by side, whatever tiles they are in: a dimension that loops can be trimmed to.
  // Fragments are whole.
  rows_ = most(row_blocks, stage::count_rows);
  panel_sums_ = gemm_.tile ? most(line_blocks, tiles) * most(row_blocks, tiles) * gemm_.mr * width_
                           : most(line_blocks, stage::count_rows) * rows_ * width_;
  sums_ = k_.add_scratch("sums", shape_.type, gemm_.panels * panel_sums_);
  is_cut_ = true;
  const int64_t tasks = full / gemm_.panels, left = full % gemm_.panels;
  for (const AxisPart& lines : line_blocks) {
    for (const AxisPart& rows : row_blocks) {
      if (tasks) groups->push_back(cut_group(lines, rows, tasks, gemm_.panels, 0, width_));
      if (left) groups->push_back(cut_group(lines, rows, 1, left, tasks * gemm_.panels, width_));
      if (rest) groups->push_back(cut_group(lines, rows, 1, 1, full, rest));
    }
  }
}

kernel::Group GemmEmitter::cut_group(const AxisPart& lines, const AxisPart& rows, int64_t tasks,
                                     int64_t panels, int64_t first_panel, int64_t width) {
  kernel::Group group;
  digits_.assign(extents_.size(), Expr(0));
  Expr line_block, block, task;
  if (gemm_.panels_first) add_grid(&group, "panels_of", tasks, &task);
  for (int d : shape_.batch) add_grid(&group, stage_.out[d].name, extents_[d], &digits_[d]);
  if (lines.blocks > 1) add_grid(&group, "lines_of", lines.blocks, &line_block);
  if (rows.blocks > 1) add_grid(&group, "rows_of", rows.blocks, &block);
  if (!gemm_.panels_first) add_grid(&group, "panels_of", tasks, &task);
  auto emit = [&](const KBlock& k_block, Block* body) {
    block_ = k_block;
    block_.panels = panels;
    block_.panels_stay = gemm_.panels_first && group.grid.size() > 1;
    block_.first_line = line_block * lines.step + Expr(lines.runs.front().start);
    block_.first_row = block * rows.step + Expr(rows.runs.front().start);
    VarId var = k_.add_var("panel_of");
    block_.panel = Expr::digit(s_.add_scope(var, panels));
    Panel panel{Expr(first_panel) + task * panels + block_.panel, width,
                static_cast<int>((width + gemm_.lanes - 1) / gemm_.lanes)};
    Block inner;
    emit_panel(panel, lines, rows, line_block * lines.step, block * rows.step, &inner);
    body->push_back(make_loop(LoopKind::serial, var, k_.constant(panels), std::move(inner)));
  };
  const int64_t k = extents_[shape_.k[0]], kc = gemm_.kc / word_ / k_places_[0];
  const int64_t blocks = (k + kc - 1) / kc;
  KBlock one;
  one.count = std::min(kc, k);
  one.last = blocks == 1;
  emit(one, &group.body);
  one.first = false;
  if (blocks > 2) {
    VarId var = k_.add_var("k_block");
    one.start = Expr(kc) + Expr::digit(s_.add_scope(var, blocks - 2)) * kc;
    Block body;
    emit(one, &body);
    group.body.push_back(
        make_loop(LoopKind::serial, var, k_.constant(blocks - 2), std::move(body)));
  }
  if (blocks > 1) {
    one.start = Expr((blocks - 1) * kc);
    one.count = k - (blocks - 1) * kc;
    one.last = true;
    emit(one, &group.body);
  }
  return group;
}

// Loads a tile's sums from scratch, or stores them there for the next block of K.
void GemmEmitter::move_sums(const Panel& panel, const Tile& tile, bool load, Block* block) {
  const Segment all_rows{0, 1, 0, tile.rows->rows};
  VarId l = k_.add_var("l");
  const Expr lane = Expr::digit(s_.add_scope(l, gemm_.lanes));
  const Expr first = (tile.y0 - block_.first_line) * rows_ + tile.m0 - block_.first_row;
  const Expr start = block_.panel * panel_sums_ + first * width_ + lane;
  Block body;
  for (int v = 0; v < panel.vectors; ++v) {
    Block one = over_tile({0, 1, 0, 1}, all_rows, [&](const Expr& line, const Expr& row) {
      const ExprId place = index(start + row * width_ + Expr(int64_t{v} * gemm_.lanes));
      const std::vector<ExprId> at = acc_at(line, row, v);
      return Block{load ? make_store(tile.acc, at, k_.load(sums_, {place}))
                        : make_store(sums_, {place}, k_.load(tile.acc, at))};
    });
    for (Stmt& stmt : one) body.push_back(std::move(stmt));
  }
  block->push_back(lanes_loop(l, gemm_.lanes, std::move(body)));
}

}  // namespace heddle::stitch
