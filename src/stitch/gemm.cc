// The GEMM family's code (cpu-codegen.md §2): register tiles of mr rows by nv vectors, B read in
// panels, A in place, the next panel fetched ahead, whatever hangs on the dot done on the tile.
#include <algorithm>
#include <tuple>

#include "stitch/stitcher.h"

namespace heddle::stitch {

using schedule::Gemm;
using schedule::GemmShape;

class GemmEmitter {
 public:
  GemmEmitter(Stitcher* s, int number)
      : s_(*s),
        k_(s->kernel_),
        row_(std::get<Row>(s->placed_.schedule.nodes[number])),
        gemm_(*row_.gemm),
        dot_(static_cast<int>(row_.joined[0].index())),
        stage_(s->placed_.graph.stages[dot_]),
        shape_(match_gemm(s->placed_.graph, row_.joined[0]).shape) {
    Decision inverted =
        invert_epilogue(s->placed_.graph, row_.joined[0], &epilogue_digits_);
    HEDDLE_CHECK(static_cast<bool>(inverted), "{}", inverted.reason());
    width_ = int64_t{gemm_.nv} * gemm_.lanes;
  }

  std::vector<kernel::Group> emit() {
    const int64_t full = shape_.n_extent / width_, rest = shape_.n_extent % width_;
    if (gemm_.copy_b) {
      kernel::Buffer panel;
      panel.name = "panel";
      panel.type = Type::f32;
      panel.extents = {shape_.k_extent * width_};
      panel.space = kernel::Space::scratch;
      panel.offset_bytes = k_.scratch_bytes;
      k_.scratch_bytes += (shape_.k_extent * width_ * 4 + 63) / 64 * 64;
      panel_ = k_.add_buffer(panel);
    }
    std::vector<kernel::Group> groups;
    const int64_t blocks = shape_.m_extent / gemm_.m_block, last = shape_.m_extent % gemm_.m_block;
    for (auto [count, first_row, rows] :
         {std::tuple{blocks, int64_t{0}, gemm_.m_block}, {last ? 1 : 0, blocks * gemm_.m_block, last}}) {
      if (count && full) groups.push_back(group(count, first_row, rows, full, 0, width_));
      if (count && rest) groups.push_back(group(count, first_row, rows, 1, full, rest));
    }
    return groups;
  }

 private:
  // Tasks over (batch, block of rows, panel): neighbours in one block share its rows of A.
  kernel::Group group(int64_t blocks, int64_t first_row, int64_t rows, int64_t panels,
                      int64_t first_panel, int64_t width) {
    kernel::Group group;
    begin_batch(&group);
    Expr m0(first_row);
    if (blocks > 1) {
      VarId var = k_.add_var("rows_of");
      m0 = m0 + Expr::digit(s_.add_scope(var, blocks)) * rows;
      group.grid.push_back({var, k_.constant(blocks)});
    }
    VarId var = k_.add_var("panel_of");
    Expr panel = Expr(first_panel) + Expr::digit(s_.add_scope(var, panels));
    group.grid.push_back({var, k_.constant(panels)});
    emit_panel(panel, width, m0, rows, &group.body);
    return group;
  }

  void begin_batch(kernel::Group* group) {
    digits_.assign(stage_.out.size() + stage_.red.size(), Expr(0));
    for (int d : shape_.batch) {
      VarId var = k_.add_var(stage_.out[d].name);
      digits_[d] = Expr::digit(s_.add_scope(var, stage_.out[d].extent));
      group->grid.push_back({var, k_.constant(stage_.out[d].extent)});
    }
  }

  // Rows [m0, m0 + rows) against one panel of `width` columns, in balanced tiles.
  void emit_panel(const Expr& panel, int64_t width, const Expr& m0, int64_t rows, Block* block) {
    if (gemm_.copy_b) copy_panel(panel, width, block);
    int64_t tiles = (rows + gemm_.mr - 1) / gemm_.mr;
    int64_t low = rows / tiles, tall = rows - low * tiles;
    emit_tiles(panel, width, m0, Expr(0), tall, low + 1, block);
    emit_tiles(panel, width, m0 + Expr(tall * (low + 1)), Expr(tall), tiles - tall, low, block);
  }

  void emit_tiles(const Expr& panel, int64_t width, const Expr& m0, const Expr& first_tile,
                  int64_t count, int64_t rows, Block* block) {
    if (count == 0 || rows == 0) return;
    if (count == 1) return emit_tile(panel, width, m0, first_tile, rows, block);
    VarId var = k_.add_var("tile");
    int scope = s_.add_scope(var, count);
    Block body;
    emit_tile(panel, width, m0 + Expr::digit(scope) * rows, first_tile + Expr::digit(scope), rows,
              &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(count), std::move(body)));
  }

  int vectors(int64_t width) const {
    return static_cast<int>((width + gemm_.lanes - 1) / gemm_.lanes);
  }

  ExprId index(const Expr& x) { return s_.index_expr(x); }

  // Linear index of an operand's element with m, n and the reduced digits given in scope.
  Expr operand(int load, const Expr& m, const Expr& n, const std::vector<Expr>& k) const {
    std::vector<Expr> digits = digits_;
    if (shape_.m >= 0) digits[shape_.m] = m;
    digits[shape_.n] = n;
    for (size_t i = 0; i < k.size(); ++i) digits[shape_.k[i]] = k[i];
    return substitute(stage_.loads[load].coordinates[0], digits, s_.scope_extents_);
  }

  // The panel's columns, contiguous and padded with zeros to whole vectors.
  void copy_panel(const Expr& panel, int64_t width, Block* block) {
    std::vector<VarId> vars;
    std::vector<Expr> k = outer_k(&vars, stage_.red.size());
    Block body;
    for (int v = 0; v < vectors(width); ++v) {
      VarId l = k_.add_var("l");
      int ls = s_.add_scope(l, gemm_.lanes);
      Expr column = Expr(int64_t{v} * gemm_.lanes) + Expr::digit(ls);
      Expr at = operand(shape_.b_load, Expr(0), panel * width_ + column, k);
      ExprId x = columns_load(s_.inputs_[stage_.loads[shape_.b_load].source.input], at, ls, v,
                              width);
      Block store;
      store.push_back(make_store(panel_, {index(k_linear(k) * width_ + column)}, x));
      body.push_back(make_loop(LoopKind::vector, l, k_.constant(gemm_.lanes), std::move(store),
                               gemm_.lanes));
    }
    close_k(vars, std::move(body), block);
  }

  // Loops over the first `count` reduced digits: their variables and values.
  std::vector<Expr> outer_k(std::vector<VarId>* vars, size_t count) {
    std::vector<Expr> values;
    for (size_t i = 0; i < count; ++i) {
      vars->push_back(k_.add_var("k"));
      values.push_back(Expr::digit(s_.add_scope(vars->back(), stage_.red[i].extent)));
    }
    return values;
  }
  void close_k(const std::vector<VarId>& vars, Block body, Block* block) {
    for (size_t i = vars.size(); i-- > 0;) {
      Block outer;
      outer.push_back(make_loop(LoopKind::serial, vars[i], k_.constant(stage_.red[i].extent),
                                std::move(body)));
      body = std::move(outer);
    }
    for (Stmt& stmt : body) block->push_back(std::move(stmt));
  }
  Expr k_linear(const std::vector<Expr>& k) const {
    Expr linear;
    for (size_t i = 0; i < k.size(); ++i) linear = linear * stage_.red[i].extent + k[i];
    return linear;
  }

  // A load of lanes whose last vector may be short: zero beyond the width.
  ExprId columns_load(BufferId buffer, const Expr& at, int lane_scope, int v, int64_t width) {
    int64_t here = width - int64_t{v} * gemm_.lanes;
    if (here >= gemm_.lanes) return k_.load(buffer, {index(at)});
    ExprId mask = k_.compare(Op::lt, k_.ref(s_.scope_[lane_scope]), k_.constant(here));
    return k_.load_if(buffer, {index(at)}, mask, emit_constant(&k_, Type::f32, 0));
  }

  void emit_tile(const Expr& panel, int64_t width, const Expr& m0, const Expr& tile, int64_t rows,
                 Block* block) {
    const int nv = vectors(width);
    kernel::Buffer registers;
    registers.name = "acc";
    registers.type = Type::f32;
    registers.extents = {rows, nv};
    registers.space = kernel::Space::reg;
    registers.lanes = gemm_.lanes;
    BufferId acc = k_.add_buffer(registers);
    Block clear;
    for (int v = 0; v < nv; ++v) {
      VarId i = k_.add_var("i");
      Block store;
      store.push_back(make_store(acc, {k_.ref(i), k_.constant(v)}, emit_constant(&k_, Type::f32, 0)));
      clear.push_back(make_loop(LoopKind::unrolled, i, k_.constant(rows), std::move(store)));
    }
    block->push_back(lanes_loop(k_.add_var("l"), gemm_.lanes, std::move(clear)));
    const int64_t inner_k = stage_.red.back().extent;
    const int64_t steps = inner_k / gemm_.ku, rest = inner_k % gemm_.ku;
    std::vector<VarId> vars;
    std::vector<Expr> outer = outer_k(&vars, stage_.red.size() - 1);
    auto k_at = [&](const Expr& inner) {
      std::vector<Expr> k = outer;
      k.push_back(inner);
      return k;
    };
    Block body;
    if (steps > 0) {
      VarId ko = k_.add_var("ko"), ki = k_.add_var("ki");
      int so = s_.add_scope(ko, steps), si = s_.add_scope(ki, gemm_.ku);
      Block inner, around;
      prefetch_next(panel, tile, k_linear(outer) * steps + Expr::digit(so),
                    shape_.k_extent / inner_k * steps, &around);
      emit_step(acc, panel, width, m0, rows,
                k_at(Expr::digit(so) * gemm_.ku + Expr::digit(si)), &inner);
      around.push_back(make_loop(LoopKind::unrolled, ki, k_.constant(gemm_.ku), std::move(inner)));
      body.push_back(make_loop(LoopKind::serial, ko, k_.constant(steps), std::move(around)));
    }
    if (rest > 0) {
      VarId ki = k_.add_var("ki");
      int si = s_.add_scope(ki, rest);
      Block inner;
      emit_step(acc, panel, width, m0, rows, k_at(Expr(steps * gemm_.ku) + Expr::digit(si)),
                &inner);
      body.push_back(make_loop(LoopKind::unrolled, ki, k_.constant(rest), std::move(inner)));
    }
    close_k(vars, std::move(body), block);
    emit_epilogue(acc, panel, width, m0, rows, block);
  }

  Stmt lanes_loop(VarId var, int64_t extent, Block body) {
    return make_loop(LoopKind::vector, var, k_.constant(extent), std::move(body), gemm_.lanes);
  }

  // Lines of the next panel, spread evenly over the steps of all tiles against this one.
  void prefetch_next(const Expr& panel, const Expr& tile, const Expr& step, int64_t steps,
                     Block* block) {
    if (gemm_.prefetch == 0 || shape_.b_panel == 0) return;
    for (int j = 0; j < gemm_.prefetch; ++j) {
      Stmt stmt;
      stmt.kind = kernel::StmtKind::prefetch;
      stmt.buffer = s_.inputs_[stage_.loads[shape_.b_load].source.input];
      Expr line = (tile * steps + step) * gemm_.prefetch + Expr(j);
      stmt.indices = {index((panel + Expr(1)) * shape_.b_panel_stride + line * 16)};
      stmt.level = 2;
      block->push_back(std::move(stmt));
    }
  }

  // acc += A[m, k] · B[k, n] for one k.
  void emit_step(BufferId acc, const Expr& panel, int64_t width, const Expr& m0, int64_t rows,
                 const std::vector<Expr>& k, Block* block) {
    const int nv = vectors(width);
    VarId l = k_.add_var("l");
    int ls = s_.add_scope(l, gemm_.lanes);
    Block body;
    std::vector<ExprId> b;
    for (int v = 0; v < nv; ++v) {
      Expr column = Expr(int64_t{v} * gemm_.lanes) + Expr::digit(ls);
      ExprId x;
      if (gemm_.copy_b) {
        x = k_.load(panel_, {index(k_linear(k) * width_ + column)});
      } else if (shape_.b_panel > 0) {
        // Packed panels are padded to whole vectors.
        Expr base = operand(shape_.b_load, Expr(0), Expr(0), k);
        x = k_.load(s_.inputs_[stage_.loads[shape_.b_load].source.input],
                    {index(base + panel * shape_.b_panel_stride + column)});
      } else {
        Expr at = operand(shape_.b_load, Expr(0), panel * width_ + column, k);
        x = columns_load(s_.inputs_[stage_.loads[shape_.b_load].source.input], at, ls, v, width);
      }
      VarId name = k_.add_var("b", Type::f32);
      body.push_back(make_let(name, x));
      b.push_back(k_.ref(name));
    }
    VarId i = k_.add_var("i");
    int is = s_.add_scope(i, rows);
    Block update;
    ExprId a = k_.load(s_.inputs_[stage_.loads[shape_.a_load].source.input],
                       {index(operand(shape_.a_load, m0 + Expr::digit(is), Expr(0), k))});
    VarId name = k_.add_var("a", Type::f32);
    update.push_back(make_let(name, a));
    for (int v = 0; v < nv; ++v) {
      ExprId sum = k_.load(acc, {k_.ref(i), k_.constant(v)});
      update.push_back(
          make_store(acc, {k_.ref(i), k_.constant(v)}, k_.fma(k_.ref(name), b[v], sum)));
    }
    body.push_back(make_loop(LoopKind::unrolled, i, k_.constant(rows), std::move(update)));
    block->push_back(lanes_loop(l, gemm_.lanes, std::move(body)));
  }

  // The tile is done: the dot's own output, and the maps that hang on it, element by element.
  void emit_epilogue(BufferId acc, const Expr& panel, int64_t width, const Expr& m0, int64_t rows,
                     Block* block) {
    for (int v = 0; v < vectors(width); ++v) {
      int64_t here = std::min<int64_t>(gemm_.lanes, width - int64_t{v} * gemm_.lanes);
      VarId l = k_.add_var("l"), i = k_.add_var("i");
      int is = s_.add_scope(i, rows), ls = s_.add_scope(l, here);
      std::vector<Expr> digits(digits_.begin(), digits_.end() - 1);
      if (shape_.m >= 0) digits[shape_.m] = m0 + Expr::digit(is);
      digits[shape_.n] = panel * width_ + Expr(int64_t{v} * gemm_.lanes) + Expr::digit(ls);
      Block body;
      ExprId sum = k_.load(acc, {k_.ref(i), k_.constant(v)});
      std::vector<std::vector<Home>> saved = s_.homes_;
      s_.homes_[dot_][0] = {Home::Kind::current, sum, {}, false, false};
      if (stage_.values[0].output >= 0) s_.store_value(dot_, 0, digits, sum, &body);
      for (size_t j = 1; j < row_.joined.size(); ++j) {
        int number = static_cast<int>(row_.joined[j].index());
        const Stage& map = s_.placed_.graph.stages[number];
        std::vector<Expr> mine;
        for (const Expr& x : epilogue_digits_[number])
          mine.push_back(substitute(x, digits, s_.scope_extents_));
        Stitcher::Context context = s_.context(number, mine);
        for (size_t value = 0; value < map.values.size(); ++value) {
          ExprId x = s_.node(&context, map.values[value].result);
          VarId name = k_.add_var("e", k_.expr(x).type);
          body.push_back(make_let(name, x));
          x = k_.ref(name);
          s_.store_value(number, static_cast<int>(value), mine, x, &body);
          s_.homes_[number][value] = {Home::Kind::current, x, {}, false, false};
        }
      }
      s_.homes_ = saved;
      Block lanes;
      lanes.push_back(lanes_loop(l, here, std::move(body)));
      block->push_back(make_loop(LoopKind::unrolled, i, k_.constant(rows), std::move(lanes)));
    }
  }

  Stitcher& s_;
  kernel::Kernel& k_;
  const Row& row_;
  const Gemm& gemm_;
  int dot_;
  const Stage& stage_;
  GemmShape shape_;
  int64_t width_ = 0;
  BufferId panel_;
  std::vector<Expr> digits_;  // of the dot in scope: out, then k
  std::vector<std::vector<Expr>> epilogue_digits_;
};

std::vector<kernel::Group> emit_gemm(Stitcher* stitcher, int row) {
  return GemmEmitter(stitcher, row).emit();
}

}  // namespace heddle::stitch
