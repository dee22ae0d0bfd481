// The GEMM family's code (docs/gemm.md): register tiles of mr rows by nv vectors, B read in panels,
// A in place, the next panel prefetched, the epilogue applied to the tile.
#include <algorithm>

#include "schedule/bounded_rows.h"
#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

GemmEmitter::GemmEmitter(Stitcher* s, int number)
    : s_(*s),
      k_(s->kernel_),
      row_(std::get<Row>(s->placed_.schedule.nodes[number])),
      gemm_(row_.gemm()->record),
      dot_(static_cast<int>(row_.joined[0].index())),
      stage_(s->placed_.graph.stages[dot_]),
      shape_(row_.gemm()->shape),
      word_(gemm_.word()),
      a_place_(stage_.loads[shape_.a_load].coordinates[0]),
      b_place_(stage_.loads[shape_.b_load].coordinates[0]),
      extents_(stage_.extents()) {
  count_words();
  find_sums();
  Decision inverted = invert_epilogue(s->placed_.graph, joined_, &epilogue_digits_);
  HEDDLE_CHECK(static_cast<bool>(inverted), "{}", inverted.reason());
  width_ = int64_t{gemm_.nv} * gemm_.lanes;
  k_places_.assign(shape_.k.size(), 1);
  for (size_t i = shape_.k.size(); i-- > 1;)
    k_places_[i - 1] = k_places_[i] * extents_[shape_.k[i]];
  if (column_sums_.empty()) find_turned();
  if (copies_lines(gemm_, shape_)) window_lines_ = stage::window_lines(shape_, stage_);
  turned_.resize(s->placed_.graph.stages.size());
  block_.count = extents_[shape_.k[0]];
  if (stage_.loads[shape_.a_load].source.input < 0) return;  // read_from() sets it
  a_ = input_of(shape_.a_load);
  a_at_ = coordinate(shape_.a_load);
}

// From here on the innermost digit of k counts words.
void GemmEmitter::count_words() {
  if (word_ == 1) return;
  extents_[shape_.k.back()] /= word_;
  a_place_ = stage::in_words(a_place_, shape_, word_, extents_);
  b_place_ = stage::in_words(b_place_, shape_, word_, extents_);
  if (shape_.b_panel == 0) return;
  b_place_ = floor_div(b_place_, word_, extents_);
  kernel::Buffer& packed = k_.buffers[input_of(shape_.b_load).index()];
  if (packed.type == operand_type()) return;  // already converted for another product
  packed.type = operand_type();
  packed.extents[0] /= word_;
}

void GemmEmitter::read_from(BufferId buffer, Expr at, Expr base) {
  a_ = buffer;
  a_at_ = std::move(at);
  a_base_ = std::move(base);
}

Expr GemmEmitter::k_linear() const {
  Expr linear;
  for (size_t i = 0; i < shape_.k.size(); ++i)
    linear = linear + digits_[shape_.k[i]] * k_places_[i];
  return linear;
}

void GemmEmitter::make_panel() {
  if (gemm_.copy_b)
    panel_ = k_.add_scratch("panel", operand_type(), shape_.k_extent / word_ * width_);
}

std::vector<kernel::Group> GemmEmitter::emit() {
  const int64_t full = shape_.n_extent / width_, rest = shape_.n_extent % width_;
  make_panel();
  std::vector<kernel::Group> groups;
  if (window_lines_) {
    emit_lines(full, rest, &groups);
    return groups;
  }
  if (gemm_.panels > 0) {
    emit_cut(full, rest, &groups);
    return groups;
  }
  for (const AxisPart& lines : line_parts(gemm_, shape_, stage_)) {
    for (const AxisPart& rows : row_parts(gemm_, shape_, stage_)) {
      if (full) groups.push_back(group(lines, rows, full, 0, width_));
      if (rest) groups.push_back(group(lines, rows, 1, full, rest));
    }
  }
  return groups;
}

void GemmEmitter::add_grid(kernel::Group* group, const std::string& name, int64_t extent,
                           Expr* value) {
  VarId var = k_.add_var(name);
  *value = Expr::digit(s_.add_scope(var, extent));
  group->grid.push_back({var, k_.constant(extent)});
}

// Tasks over (batch, lines, rows, groups, panel): adjacent tasks share their rows of A; or with the
// panel first: they share the panel.
kernel::Group GemmEmitter::group(const AxisPart& lines, const AxisPart& rows, int64_t panels,
                                 int64_t first_panel, int64_t width) {
  kernel::Group group;
  Panel panel{Expr(0), width, static_cast<int>((width + gemm_.lanes - 1) / gemm_.lanes)};
  auto add_panel = [&] {
    add_grid(&group, "panel_of", panels, &panel.number);
    panel.number = Expr(first_panel) + panel.number;
  };
  if (gemm_.panels_first) add_panel();
  digits_.assign(extents_.size(), Expr(0));
  const int shared = gemm_.shared > 1 ? schedule::shared_batch(shape_, stage_) : -1;
  auto add_batch = [&](bool groups) {
    for (int d : shape_.batch)
      if (schedule::is_group(shape_, stage_, d) == groups)
        add_grid(&group, stage_.out[d].name, d == shared ? extents_[d] / gemm_.shared : extents_[d],
                 &digits_[d]);
  };
  add_batch(false);
  auto add_blocks = [&](const char* name, const AxisPart& part) {
    Expr block;
    if (part.blocks > 1) {
      add_grid(&group, name, part.blocks, &block);
      row_block_ = block;
    }
    return block * part.step;
  };
  Expr y0 = add_blocks("lines_of", lines);
  Expr m0 = add_blocks("rows_of", rows);
  add_batch(true);
  if (!gemm_.panels_first) add_panel();
  if (shared < 0) {
    emit_panel(panel, lines, rows, y0, m0, &group.body);
    return group;
  }
  copy_panel(panel, &group.body);
  VarId var = k_.add_var("of_batch");
  digits_[shared] = digits_[shared] * gemm_.shared + Expr::digit(s_.add_scope(var, gemm_.shared));
  Block body;
  emit_tiles(panel, lines, rows, y0, m0, &body);
  group.body.push_back(
      make_loop(LoopKind::serial, var, k_.constant(gemm_.shared), std::move(body)));
  return group;
}

template <typename Emit>
void GemmEmitter::for_run(const char* name, const Run& run, const Expr& origin, const Expr& first,
                          Block* block, Emit&& emit) {
  Expr start = origin + Expr(run.start);
  // At run time there may be fewer rows, and none for this tile.
  const bool may_go = run.rows > 1 && schedule::is_bounded(stage_.instr);
  if (run.count == 1 && !may_go) return emit(start, first, block);
  VarId var = k_.add_var(name);
  Expr i = Expr::digit(s_.add_scope(var, run.count));
  Block body;
  emit(start + i * run.rows, first + i, &body);
  block->push_back(make_loop(LoopKind::serial, var, k_.constant(run.count), std::move(body)));
}

// All tiles of a task against one panel.
void GemmEmitter::emit_panel(const Panel& panel, const AxisPart& lines, const AxisPart& rows,
                             const Expr& y0, const Expr& m0, Block* block) {
  if (gemm_.copy_b) copy_panel(panel, block);
  start_sums(panel, block);
  emit_tiles(panel, lines, rows, y0, m0, block);
  store_sums(panel, block);
}

void GemmEmitter::emit_tiles(const Panel& panel, const AxisPart& lines, const AxisPart& rows,
                             const Expr& y0, const Expr& m0, Block* block) {
  int64_t across = 0, down = 0;
  for (const Run& run : rows.runs) across += run.count;
  for (const Run& line_run : lines.runs) {
    for_run("line", line_run, y0, Expr(down), block,
            [&](const Expr& y, const Expr& line_number, Block* inner) {
              if (shape_.y >= 0) digits_[shape_.y] = y;
              int64_t before = 0;
              for (const Run& row_run : rows.runs) {
                for_run("tile", row_run, m0, line_number * across + Expr(before), inner,
                        [&](const Expr& m, const Expr& number, Block* innermost) {
                          emit_tile(panel, {&line_run, &row_run, y, m, number, {}}, innermost);
                        });
                before += row_run.count;
              }
            });
    down += line_run.count;
  }
}

void GemmEmitter::emit_line(const Panel& panel, const AxisPart& rows, const Expr& y,
                            const Expr& number, Block* block) {
  static const Run kOneLine{0, 1, 1, {}};
  digits_[shape_.y] = y;
  int64_t across = 0, before = 0;
  for (const Run& run : rows.runs) across += run.count;
  for (const Run& run : rows.runs) {
    for_run("tile", run, Expr(0), number * across + Expr(before), block,
            [&](const Expr& m, const Expr& tile, Block* inner) {
              emit_tile(panel, {&kOneLine, &run, y, m, tile, {}}, inner);
            });
    before += run.count;
  }
}

void GemmEmitter::emit_block(const std::vector<Expr>& batch, const AxisPart& lines,
                             const AxisPart& rows, const Expr& y0, const Expr& m0, Block* block) {
  const int64_t full = shape_.n_extent / width_, rest = shape_.n_extent % width_;
  auto panel_at = [&](const Expr& number, int64_t width, Block* to) {
    digits_.assign(extents_.size(), Expr(0));
    for (size_t i = 0; i < batch.size(); ++i) digits_[shape_.batch[i]] = batch[i];
    Panel panel{number, width, static_cast<int>((width + gemm_.lanes - 1) / gemm_.lanes)};
    emit_panel(panel, lines, rows, y0, m0, to);
  };
  if (full == 1) {
    panel_at(Expr(0), width_, block);
  } else if (full > 1) {
    VarId var = k_.add_var("panel_of");
    Block body;
    panel_at(Expr::digit(s_.add_scope(var, full)), width_, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(full), std::move(body)));
  }
  if (rest > 0) panel_at(Expr(full), rest, block);
}

std::vector<kernel::Group> emit_gemm(Stitcher* stitcher, int row) {
  return GemmEmitter(stitcher, row).emit();
}

}  // namespace heddle::stitch
