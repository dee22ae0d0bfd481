// A pool after a convolution (schedule/pooled.h): a task's lines of the convolution are in scratch,
// or in the kernel's output, and the pool's row reads them there.
#include "schedule/pooled.h"

#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

using stage::Pooled;

class PooledEmitter {
 public:
  explicit PooledEmitter(Stitcher* s) : s_(*s), k_(s->kernel_), pooled_(*s->placed_.pooled()) {
    const Row& row = std::get<Row>(s->placed_.schedule.nodes[0]);
    strip_ = schedule::pooled_strip(s->placed_);
    pitch_ = schedule::pooled_pitch(strip_.width, row.gemm()->record.lanes);
    if (!pooled_.keeps) add_buffer();
  }

  kernel::Group emit() {
    kernel::Group group;
    int node = s_.placed_.schedule.phases[0][0].body[0];
    while (const auto* loop = std::get_if<stage::Loop>(&s_.placed_.schedule.nodes[node])) {
      const VarId var = k_.add_var(loop->var);
      s_.loop_scope_[node] = s_.add_scope(var, loop->trips);
      group.grid.push_back({var, k_.constant(loop->trips)});
      node = loop->body[0];
    }
    if (!pooled_.keeps) settle();  // else it is in the output
    emit_lines(&group.body);
    emit_row(&s_, 1, s_.placed_.schedule.phases[0][0].lanes, &group.body);
    return group;
  }

 private:
  const Stage& value() const { return s_.placed_.graph.stage(pooled_.value); }

  void add_buffer() {
    buffer_ = k_.add_scratch("lines", value().values[0].type,
                             strip_.lines * pooled_.shape.m_extent * pitch_);
  }

  // The start of the pool's digit in this task.
  Expr begin(int digit) const {
    std::vector<Expr> loops;
    for (int scope : s_.loop_scope_) loops.push_back(scope >= 0 ? Expr::digit(scope) : Expr(0));
    const index::Region& need = s_.placed_.placement.stages[pooled_.pool.index()].need;
    return substitute(need[static_cast<size_t>(digit)].offset, loops, s_.scope_extents_);
  }

  // The first line that the strip reads; above the image where the pool is padded.
  Expr first_line() const { return begin(pooled_.line) * pooled_.stride + Expr(pooled_.first); }

  // Layout in scratch: [line, column, feature].
  void settle() {
    Home& home = s_.homes_[pooled_.value.index()][0];
    home = Home{};
    home.kind = Home::Kind::buffer;
    home.buffer = buffer_;
    const GemmShape& shape = pooled_.shape;
    for (int digit : pooled_.value_digits) {
      home.origin.push_back(Expr(0));
      home.pitch.push_back(0);
      if (digit == shape.n) {
        home.origin.back() = begin(pooled_.form.lane);
        home.pitch.back() = 1;
      } else if (digit == shape.m) {
        home.pitch.back() = pitch_;
      } else if (digit == shape.y) {
        home.origin.back() = first_line();
        home.pitch.back() = pitch_ * shape.m_extent;
      }
    }
  }

  void emit_lines(Block* block) {
    const GemmShape& shape = pooled_.shape;
    GemmEmitter conv(&s_, 0);
    conv.make_panel();
    // The part of the strip inside the image.
    const Expr first = first_line();
    const index::Range range = bounds(first, s_.scope_extents_);
    Expr from = first;
    ExprId lines = k_.constant(strip_.lines);
    if (range.low < 0 || range.high + strip_.lines > shape.y_extent) {
      const VarId low = k_.add_var("line_low");
      const ExprId at = s_.index_expr(first);
      block->push_back(make_let(low, k_.binary(Op::max, at, k_.constant(0))));
      const ExprId high =
          k_.binary(Op::min, k_.binary(Op::add, at, lines), k_.constant(shape.y_extent));
      lines = k_.binary(Op::sub, high, k_.ref(low));
      from = Expr::digit(s_.add_scope(low, shape.y_extent));
    }
    std::vector<Expr> batch;
    const stage::Load* load = nullptr;
    for (const stage::Load& each : s_.placed_.graph.stage(pooled_.pool).loads)
      if (each.source.input < 0) load = &each;
    for (int digit : shape.batch) {
      const auto at = std::find(pooled_.value_digits.begin(), pooled_.value_digits.end(), digit);
      int own = -1;
      HEDDLE_CHECK(
          at != pooled_.value_digits.end() &&
              load->coordinates[static_cast<size_t>(at - pooled_.value_digits.begin())].is_digit(
                  &own),
          "digit {} of the convolution is no digit of the pool", digit);
      batch.push_back(begin(own));
    }
    conv.emit_strip(batch, begin(pooled_.form.lane), strip_.width, from, lines, strip_.lines,
                    block);
  }

  Stitcher& s_;
  kernel::Kernel& k_;
  const Pooled& pooled_;
  schedule::PooledStrip strip_;
  int64_t pitch_ = 0;  // between columns
  BufferId buffer_;
};

kernel::Group emit_pooled(Stitcher* stitcher) { return PooledEmitter(stitcher).emit(); }

// All panels of [column, column + width) against lines from `first` on, one after another.
void GemmEmitter::emit_strip(const std::vector<Expr>& batch, const Expr& column, int64_t width,
                             const Expr& first, ExprId lines, int64_t most_lines, Block* block) {
  const std::vector<AxisPart> rows = row_parts(gemm_, shape_, stage_);
  HEDDLE_CHECK(rows.size() == 1 && gemm_.my == 1, "{}: lines in parts", stage_.name);
  for (int64_t done = 0; done < width; done += width_) {
    const int64_t here = std::min(width_, width - done);
    digits_.assign(extents_.size(), Expr(0));
    for (size_t i = 0; i < batch.size(); ++i) digits_[shape_.batch[i]] = batch[i];
    const Expr number = floor_div(column + Expr(done), width_, s_.scope_extents_);
    Panel panel{number, here, static_cast<int>((here + gemm_.lanes - 1) / gemm_.lanes)};
    if (gemm_.copy_b) copy_panel(panel, block);
    const VarId var = k_.add_var("line");
    const Expr line = Expr::digit(s_.add_scope(var, most_lines));
    Block body;
    emit_line(panel, rows[0], first + line, line, &body);
    block->push_back(make_loop(LoopKind::serial, var, lines, std::move(body)));
  }
}

}  // namespace heddle::stitch
