// Winograd's algorithm (schedule/winograd.h): a task takes some lines of tiles of one image and
// some output features. It transforms the input of each tile into scratch, a matrix [tile, channel]
// for each of the points; multiplies each matrix by its panels of the transformed filter; and
// transforms the products [point, tile, feature] back, with the convolution's epilogue.
#include <algorithm>
#include <array>

#include "schedule/gemm.h"
#include "stitch/stitcher.h"

namespace heddle::stitch {

using stage::Gemm;
using stage::Winograd;
using stage::WinogradShape;

namespace {

constexpr int64_t kLineElems = 16;  // of a cache line
using Line = std::vector<ExprId>;   // of points, or of outputs

// Sums and products of vectors, each with a name.
class Sums {
 public:
  Sums(kernel::Kernel* k, bool fused, Block* block) : k_(*k), fused_(fused), block_(*block) {}

  ExprId named(ExprId x) {
    VarId name = k_.add_var("t", Type::f32);
    block_.push_back(make_let(name, x));
    return k_.ref(name);
  }
  ExprId add(ExprId a, ExprId b) { return named(k_.binary(Op::add, a, b)); }
  ExprId sub(ExprId a, ExprId b) { return named(k_.binary(Op::sub, a, b)); }
  // factor·a + b
  ExprId scaled(double factor, ExprId a, ExprId b) {
    const ExprId f = k_.constant(Type::f32, factor);
    if (fused_) return named(k_.fma(a, f, b));
    return named(k_.binary(Op::add, k_.binary(Op::mul, a, f), b));
  }

  // Bᵀd of one line of points.
  Line input(const Line& d) {
    if (d.size() == 4) return {sub(d[0], d[2]), add(d[1], d[2]), sub(d[2], d[1]), sub(d[1], d[3])};
    const ExprId even = scaled(-4, d[2], d[4]), odd = scaled(-4, d[1], d[3]);
    const ExprId far = sub(d[4], d[2]), near = sub(d[3], d[1]);
    return {scaled(4, d[0], scaled(-5, d[2], d[4])),
            add(even, odd),
            sub(even, odd),
            scaled(2, near, far),
            scaled(-2, near, far),
            scaled(4, d[1], scaled(-5, d[3], d[5]))};
  }

  // Aᵀx of one line of points.
  Line output(const Line& x) {
    const ExprId plus = add(x[1], x[2]), minus = sub(x[1], x[2]);
    if (x.size() == 4) return {add(x[0], plus), sub(minus, x[3])};
    const ExprId far_plus = add(x[3], x[4]), far_minus = sub(x[3], x[4]);
    return {add(add(x[0], plus), far_plus), scaled(2, far_minus, minus), scaled(4, far_plus, plus),
            add(scaled(8, far_minus, minus), x[5])};
  }

 private:
  kernel::Kernel& k_;
  bool fused_;
  Block& block_;
};

}  // namespace

class WinogradEmitter {
 public:
  WinogradEmitter(Stitcher* s, int number)
      : s_(*s),
        k_(s->kernel_),
        row_(std::get<Row>(s->placed_.schedule.nodes[number])),
        record_(row_.winograd()->record),
        shape_(row_.winograd()->shape),
        tile_(record_.tile),
        stage_(s->placed_.graph.stage(row_.joined[0])) {
    const stage::StageGraph& graph = s->placed_.graph;
    Decision inverted = invert_epilogue(graph, row_.joined, &epilogue_);
    HEDDLE_CHECK(static_cast<bool>(inverted), "{}", inverted.reason());
    points_ = record_.m + 2;
    across_ = (shape_.width + record_.m - 1) / record_.m;
    down_ = (shape_.height + record_.m - 1) / record_.m;
    tiles_ = record_.lines * across_;
    width_ = int64_t{tile_.nv} * tile_.lanes;
    fused_ = s->target_.has("fma") || s->target_.has("avx512f");
    digits_.assign(stage_.extents().size(), Expr(0));
  }

  kernel::Group emit() {
    kernel::Group group;
    for (int d : shape_.roles.batch)
      digits_[d] = grid(&group, stage_.out[d].name, stage_.extents()[d]);
    line0_ = grid(&group, "lines_of", (down_ + record_.lines - 1) / record_.lines) * record_.lines;
    column0_ = grid(&group, "columns_of", shape_.features / record_.columns) * record_.columns;
    // The stride of the points is one cache line more than their matrix: not all in the same sets.
    in_stride_ = tiles_ * shape_.channels + kLineElems;
    out_stride_ = tiles_ * record_.columns + kLineElems;
    in_ = scratch("points_in", in_stride_);
    out_ = scratch("points_out", out_stride_);
    transform_input(&group.body);
    multiply(&group.body);
    transform_output(&group.body);
    return group;
  }

 private:
  ExprId index(const Expr& x) { return s_.index_expr(x); }
  BufferId input_of(int load) const { return s_.inputs_[stage_.loads[load].source.input]; }
  int64_t points() const { return int64_t{points_} * points_; }
  Stmt lanes_loop(VarId var, Block body) {
    return make_loop(LoopKind::vector, var, k_.constant(tile_.lanes), std::move(body), tile_.lanes);
  }

  Expr grid(kernel::Group* group, const std::string& name, int64_t extent) {
    if (extent == 1) return Expr(0);
    VarId var = k_.add_var(name);
    group->grid.push_back({var, k_.constant(extent)});
    return Expr::digit(s_.add_scope(var, extent));
  }

  BufferId scratch(const char* name, int64_t stride) {
    return k_.add_scratch(name, Type::f32, stride * points());
  }

  // A loop, or its only iteration.
  template <typename Body>
  void loop(LoopKind kind, const char* name, int64_t extent, Block* block, Body&& body) {
    if (extent == 1) return body(Expr(0), block);
    VarId var = k_.add_var(name);
    Block inner;
    body(Expr::digit(s_.add_scope(var, extent)), &inner);
    block->push_back(make_loop(kind, var, k_.constant(extent), std::move(inner)));
  }

  // All tiles of the task: body(number, first line, first column, block).
  template <typename Body>
  void over_tiles(Block* block, Body&& body) {
    loop(LoopKind::serial, "line", record_.lines, block, [&](const Expr& line, Block* lines) {
      loop(LoopKind::serial, "across", across_, lines, [&](const Expr& x, Block* inner) {
        body(line * across_ + x, (line0_ + line) * record_.m, x * record_.m, inner);
      });
    });
  }

  // 0 <= x < span as a condition; none where it always holds.
  ExprId inside(const Expr& x, int64_t span) {
    const index::Range range = bounds(x, s_.scope_extents_);
    ExprId all;
    auto also = [&](ExprId one) { all = all.valid() ? k_.binary(Op::and_, all, one) : one; };
    if (range.low < 0) also(k_.compare(Op::ge, index(x), k_.constant(0)));
    if (range.high >= span) also(k_.compare(Op::lt, index(x), k_.constant(span)));
    return all;
  }

  ExprId both(ExprId a, ExprId b) {
    if (!a.valid() || !b.valid()) return a.valid() ? a : b;
    return k_.binary(Op::and_, a, b);
  }

  void transform_input(Block* block) {
    over_tiles(block, [&](const Expr& number, const Expr& y0, const Expr& x0, Block* inner) {
      // Without masks, where the whole window is inside.
      const Expr y = y0 + Expr(shape_.y_offset), x = x0 + Expr(shape_.x_offset);
      ExprId whole =
          both(inside(y, shape_.y_span - points_ + 1), inside(x, shape_.x_span - points_ + 1));
      Block fast;
      transform_tile(number, y0, x0, {}, {}, &fast);
      if (!whole.valid()) {
        for (Stmt& stmt : fast) inner->push_back(std::move(stmt));
        return;
      }
      Block edge;
      const Line lines = conditions(y, shape_.y_span, &edge);
      const Line columns = conditions(x, shape_.x_span, &edge);
      transform_tile(number, y0, x0, lines, columns, &edge);
      inner->push_back(make_if(whole, std::move(fast), std::move(edge)));
    });
  }

  // Which of the points along a side are inside.
  Line conditions(const Expr& first, int64_t span, Block* block) {
    Line result;
    for (int p = 0; p < points_; ++p) {
      ExprId one = inside(first + Expr(p), span);
      if (one.valid()) {
        VarId name = k_.add_var("inside", Type::pred);
        block->push_back(make_let(name, one));
        one = k_.ref(name);
      }
      result.push_back(one);
    }
    return result;
  }

  // Bᵀ d B for all channels of one tile. `lines`, `columns`: conditions of its points, or none.
  void transform_tile(const Expr& number, const Expr& y0, const Expr& x0, const Line& lines,
                      const Line& columns, Block* block) {
    const int64_t lanes = tile_.lanes;
    loop(LoopKind::serial, "c", shape_.channels / lanes, block, [&](const Expr& c, Block* inner) {
      VarId l = k_.add_var("l");
      const Expr channel = c * lanes + Expr::digit(s_.add_scope(l, lanes));
      Block body;
      Sums sums(&k_, fused_, &body);
      std::vector<Line> half;  // by column: d, then Bᵀd
      for (int b = 0; b < points_; ++b) {
        Line d;
        for (int a = 0; a < points_; ++a) {
          const ExprId mask =
              lines.empty() ? ExprId()
                            : both(lines[static_cast<size_t>(a)], columns[static_cast<size_t>(b)]);
          d.push_back(sums.named(pixel(y0 + Expr(a), x0 + Expr(b), channel, mask)));
        }
        half.push_back(sums.input(d));
      }
      for (int i = 0; i < points_; ++i) {
        Line line;
        for (int b = 0; b < points_; ++b)
          line.push_back(half[static_cast<size_t>(b)][static_cast<size_t>(i)]);
        const Line done = sums.input(line);
        for (int j = 0; j < points_; ++j) {
          const Expr at = Expr((i * points_ + j) * in_stride_) + number * shape_.channels + channel;
          body.push_back(make_store(in_, {index(at)}, done[static_cast<size_t>(j)]));
        }
      }
      inner->push_back(lanes_loop(l, std::move(body)));
    });
  }

  ExprId pixel(const Expr& y, const Expr& x, const Expr& channel, ExprId mask) {
    std::vector<Expr> digits = digits_;
    digits[shape_.roles.y] = y;
    digits[shape_.roles.m] = x;
    digits[shape_.c] = channel;
    const Expr at =
        substitute(stage_.loads[shape_.roles.a_load].coordinates[0], digits, s_.scope_extents_);
    const BufferId from = input_of(shape_.roles.a_load);
    if (!mask.valid()) return k_.load(from, {index(at)});
    return k_.load_if(from, {index(at)}, mask, k_.constant(Type::f32, 0));
  }

  void multiply(Block* block) {
    loop(LoopKind::serial, "point", points(), block, [&](const Expr& point, Block* inner) {
      loop(LoopKind::serial, "panel", record_.columns / width_, inner,
           [&](const Expr& panel, Block* innermost) {
             const int64_t count = (tiles_ + tile_.mr - 1) / tile_.mr;
             const int64_t low = tiles_ / count, tall = tiles_ - low * count;
             if (tall > 0) multiply_rows(point, panel, 0, 0, tall, low + 1, innermost);
             if (count > tall)
               multiply_rows(point, panel, tall * (low + 1), tall, count - tall, low, innermost);
           });
    });
  }

  // `count` register tiles of `rows` rows each, from row `first` on; `before` are done.
  void multiply_rows(const Expr& point, const Expr& panel, int64_t first, int64_t before,
                     int64_t count, int64_t rows, Block* block) {
    loop(LoopKind::serial, "tile", count, block, [&](const Expr& tile, Block* inner) {
      kernel::Buffer registers;
      registers.name = "acc";
      registers.type = Type::f32;
      registers.extents = {rows, tile_.nv};
      registers.space = kernel::Space::reg;
      registers.lanes = tile_.lanes;
      const BufferId acc = k_.add_buffer(registers);
      over_rows(rows, inner, [&](const Expr& row, int v, int, Block* body) {
        body->push_back(make_store(acc, {index(row), k_.constant(v)}, k_.constant(Type::f32, 0)));
      });
      const ExprId next = tile_.prefetch > 0 ? next_panel(point, panel, inner) : ExprId();
      const Expr row0 = Expr(first) + tile * rows;
      const int64_t ku = tile_.ku;  // channels are whole vectors: no remainder for 4
      const int64_t step = shape_.channels % ku == 0 ? ku : 1;
      loop(LoopKind::serial, "ko", shape_.channels / step, inner, [&](const Expr& ko, Block* body) {
        if (tile_.prefetch > 0)
          prefetch_next(next, (Expr(before) + tile) * (shape_.channels / step) + ko, body);
        loop(LoopKind::unrolled, "ki", step, body, [&](const Expr& ki, Block* innermost) {
          multiply_step(point, panel, row0, rows, ko * step + ki, acc, innermost);
        });
      });
      over_rows(rows, inner, [&](const Expr& row, int v, int scope, Block* body) {
        const Expr at = point * out_stride_ + (row0 + row) * record_.columns + panel * width_ +
                        Expr(int64_t{v} * tile_.lanes) + Expr::digit(scope);
        body->push_back(make_store(out_, {index(at)}, k_.load(acc, {index(row), k_.constant(v)})));
      });
    });
  }

  // All vectors of a register tile, in a loop over the lanes.
  template <typename Body>
  void over_rows(int64_t rows, Block* block, Body&& body) {
    VarId l = k_.add_var("l");
    const int scope = s_.add_scope(l, tile_.lanes);
    Block lanes;
    loop(LoopKind::unrolled, "i", rows, &lanes, [&](const Expr& row, Block* inner) {
      for (int v = 0; v < tile_.nv; ++v) body(row, v, scope, inner);
    });
    block->push_back(lanes_loop(l, std::move(lanes)));
  }

  // Where panel `panel` of `point` begins in the filter.
  Expr filter_at(const Expr& point, const Expr& panel) const {
    const int64_t panel_elems = shape_.channels * width_;
    std::vector<Expr> digits = digits_;
    digits[shape_.roles.n] = column0_;
    return substitute(stage_.loads[shape_.roles.b_load].coordinates[0], digits, s_.scope_extents_) +
           point * (shape_.channels * shape_.features) + panel * panel_elems;
  }

  void multiply_step(const Expr& point, const Expr& panel, const Expr& row0, int64_t rows,
                     const Expr& channel, BufferId acc, Block* block) {
    VarId l = k_.add_var("l");
    const Expr lane = Expr::digit(s_.add_scope(l, tile_.lanes));
    Block body;
    Line b;
    for (int v = 0; v < tile_.nv; ++v) {
      VarId name = k_.add_var("b", Type::f32);
      const Expr at =
          filter_at(point, panel) + channel * width_ + Expr(int64_t{v} * tile_.lanes) + lane;
      body.push_back(make_let(name, k_.load(input_of(shape_.roles.b_load), {index(at)})));
      b.push_back(k_.ref(name));
    }
    loop(LoopKind::unrolled, "i", rows, &body, [&](const Expr& row, Block* inner) {
      VarId name = k_.add_var("a", Type::f32);
      const Expr at = point * in_stride_ + (row0 + row) * shape_.channels + channel;
      inner->push_back(make_let(name, k_.load(in_, {index(at)})));
      for (int v = 0; v < tile_.nv; ++v) {
        const ExprId sum = k_.load(acc, {index(row), k_.constant(v)});
        const ExprId a = k_.ref(name), w = b[static_cast<size_t>(v)];
        inner->push_back(make_store(
            acc, {index(row), k_.constant(v)},
            fused_ ? k_.fma(a, w, sum) : k_.binary(Op::add, sum, k_.binary(Op::mul, a, w))));
      }
    });
    block->push_back(lanes_loop(l, std::move(body)));
  }

  // The start of the panel that is multiplied after this one.
  ExprId next_panel(const Expr& point, const Expr& panel, Block* block) {
    const int64_t panels = record_.columns / width_;
    ExprId next = index(filter_at(point + Expr(1), Expr(0)));
    if (panels > 1)
      next = k_.select(k_.compare(Op::lt, index(panel), k_.constant(panels - 1)),
                       index(filter_at(point, panel + Expr(1))), next);
    VarId name = k_.add_var("next");
    block->push_back(make_let(name, next));
    return k_.ref(name);
  }

  // The record's `prefetch` lines of the next panel; `part`: how many times this was done before.
  void prefetch_next(ExprId next, const Expr& part, Block* block) {
    for (int64_t j = 0; j < tile_.prefetch; ++j) {
      Stmt stmt;
      stmt.kind = kernel::StmtKind::prefetch;
      stmt.buffer = input_of(shape_.roles.b_load);
      stmt.indices = {
          k_.binary(Op::add, next, index((part * tile_.prefetch + Expr(j)) * kLineElems))};
      stmt.level = 2;
      block->push_back(std::move(stmt));
    }
  }

  void transform_output(Block* block) {
    const int64_t lanes = tile_.lanes;
    over_tiles(block, [&](const Expr& number, const Expr& y0, const Expr& x0, Block* tiles) {
      loop(LoopKind::serial, "f", record_.columns / lanes, tiles, [&](const Expr& f, Block* inner) {
        const BufferId sums = transform_back(number, f * lanes, inner);
        loop(LoopKind::unrolled, "i", record_.m, inner, [&](const Expr& i, Block* rows) {
          loop(LoopKind::unrolled, "j", record_.m, rows, [&](const Expr& j, Block* each) {
            store_output(sums, y0 + i, x0 + j, i * record_.m + j, f * lanes, each);
          });
        });
      });
    });
  }

  // Aᵀ x A for a vector of features of one tile, in registers.
  BufferId transform_back(const Expr& number, const Expr& feature, Block* block) {
    kernel::Buffer registers;
    registers.name = "sums";
    registers.type = Type::f32;
    registers.extents = {int64_t{record_.m} * record_.m};
    registers.space = kernel::Space::reg;
    registers.lanes = tile_.lanes;
    const BufferId result = k_.add_buffer(registers);
    VarId l = k_.add_var("l");
    const Expr lane = Expr::digit(s_.add_scope(l, tile_.lanes));
    Block body;
    Sums sums(&k_, fused_, &body);
    std::vector<Line> half;  // by column of points
    for (int b = 0; b < points_; ++b) {
      Line x;
      for (int a = 0; a < points_; ++a) {
        const Expr at =
            Expr((a * points_ + b) * out_stride_) + number * record_.columns + feature + lane;
        x.push_back(sums.named(k_.load(out_, {index(at)})));
      }
      half.push_back(sums.output(x));
    }
    for (int i = 0; i < record_.m; ++i) {
      Line line;
      for (int b = 0; b < points_; ++b)
        line.push_back(half[static_cast<size_t>(b)][static_cast<size_t>(i)]);
      const Line done = sums.output(line);
      for (int j = 0; j < record_.m; ++j)
        body.push_back(
            make_store(result, {k_.constant(i * record_.m + j)}, done[static_cast<size_t>(j)]));
    }
    block->push_back(lanes_loop(l, std::move(body)));
    return result;
  }

  // Outputs beyond the image, of tiles at its end, are not stored.
  void store_output(BufferId sums, const Expr& y, const Expr& x, const Expr& number,
                    const Expr& feature, Block* block) {
    VarId l = k_.add_var("l");
    std::vector<Expr> digits(digits_.begin(),
                             digits_.begin() + static_cast<long>(stage_.out.size()));
    digits[shape_.roles.y] = y;
    digits[shape_.roles.m] = x;
    digits[shape_.roles.n] = column0_ + feature + Expr::digit(s_.add_scope(l, tile_.lanes));
    Block store{lanes_loop(l, finished(digits, k_.load(sums, {index(number)})))};
    const ExprId exists = both(inside(y, shape_.height), inside(x, shape_.width));
    if (exists.valid())
      block->push_back(make_if(exists, std::move(store)));
    else
      for (Stmt& stmt : store) block->push_back(std::move(stmt));
  }

  // The stores for the output at `digits` and for the maps of its epilogue.
  Block finished(const std::vector<Expr>& digits, ExprId sum) {
    Block body;
    const int conv = static_cast<int>(row_.joined[0].index());
    std::vector<std::vector<Home>> saved = s_.homes_;
    if (stage_.values[0].output >= 0) s_.store_value(conv, 0, digits, sum, &body);
    s_.homes_[conv][0] = {Home::Kind::current, sum, {}, false, false};
    for (size_t j = 1; j < row_.joined.size(); ++j) {
      const int number = static_cast<int>(row_.joined[j].index());
      const Stage& map = s_.placed_.graph.stages[number];
      std::vector<Expr> mine;
      for (const Expr& x : epilogue_[number])
        mine.push_back(substitute(x, digits, s_.scope_extents_));
      Stitcher::Context context = s_.context(number, mine);
      for (size_t value = 0; value < map.values.size(); ++value) {
        const ExprId x = s_.node(&context, map.values[value].result);
        VarId name = k_.add_var("e", k_.expr(x).type);
        body.push_back(make_let(name, x));
        s_.store_value(number, static_cast<int>(value), mine, k_.ref(name), &body);
        s_.homes_[number][value] = {Home::Kind::current, k_.ref(name), {}, false, false};
      }
    }
    s_.homes_ = saved;
    return body;
  }

  Stitcher& s_;
  kernel::Kernel& k_;
  const Row& row_;
  const Winograd& record_;
  const WinogradShape& shape_;
  const Gemm& tile_;
  const Stage& stage_;
  std::vector<std::vector<Expr>> epilogue_;
  int points_ = 4;                 // along a side
  int64_t across_ = 1, down_ = 1;  // tiles of an image
  int64_t tiles_ = 1;              // of a task
  int64_t width_ = 0;              // of a panel
  bool fused_ = true;
  std::vector<Expr> digits_;  // of the stage; the batch's are the task's
  Expr line0_, column0_;
  int64_t in_stride_ = 0, out_stride_ = 0;  // elements from point to point
  BufferId in_, out_;
};

kernel::Group emit_winograd(Stitcher* stitcher, int row) {
  return WinogradEmitter(stitcher, row).emit();
}

}  // namespace heddle::stitch
