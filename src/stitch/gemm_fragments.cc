// A tile of the GEMM family with a matrix instruction (kernel/mma.h): blocks of 16 rows by 16
// columns are accumulated in fragments, stored in scratch, and finished from there row by row.
//   clear, or load, d[i, v]
//   for k in steps of the instruction:  load a[i], b[v];  d[i, v] += a[i] * b[v]
//   store d[i, v] in scratch;  for each row: its epilogue
//
// Last rows that do not fill a fragment are computed together with some of the rows before them.
#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

using stage::kFragmentSide;
using stage::whole_fragments;

BufferId GemmEmitter::fragments(const char* name, Type type, std::vector<int64_t> extents) {
  for (size_t i = 0; i < k_.buffers.size(); ++i) {
    const kernel::Buffer& buffer = k_.buffers[i];
    if (buffer.space == kernel::Space::fragment && buffer.name == name &&
        buffer.extents == extents && buffer.type == type)
      return BufferId(i);
  }
  kernel::Buffer buffer;
  buffer.name = name;
  buffer.type = type;
  buffer.extents = std::move(extents);
  buffer.space = kernel::Space::fragment;
  buffer.lanes = 1;
  return k_.add_buffer(buffer);
}

Stmt GemmEmitter::move_fragment(kernel::StmtKind kind, BufferId fragment,
                                const std::vector<int64_t>& number, BufferId memory, const Expr& at,
                                int64_t stride) {
  Stmt stmt{kind};
  stmt.fragments = {fragment};
  for (int64_t i : number) stmt.source_indices.push_back(k_.constant(i));
  if (kind == kernel::StmtKind::fragment_clear) return stmt;
  stmt.buffer = memory;
  stmt.indices = {index(at)};
  stmt.count = kFragmentSide;
  stmt.stride = stride;
  return stmt;
}

void GemmEmitter::emit_fragments(const Panel& panel, const Tile& tile, Block* block) {
  const int64_t rows = whole_fragments(tile.rows->rows), before = rows - tile.rows->rows;
  HEDDLE_CHECK(tile.rows->start >= before, "{} rows from {} on", rows, tile.rows->start);
  if (!is_cut_ && !sums_.valid()) sums_ = k_.add_scratch("sums", shape_.type, gemm_.mr * width_);
  const Expr start =
      is_cut_ ? block_.panel * panel_sums_ + tile.number * (gemm_.mr * width_) : Expr(0);
  if (block_.last) prefetch_results(panel, tile, block);
  Tile computed = tile;
  computed.m0 = tile.m0 - Expr(before);
  computed.fragment_rows = rows / kFragmentSide;
  sum_fragments(panel, computed, start, block);
  if (block_.last) emit_rows(panel, tile, start + Expr(before * width_), block);
}

// Computes the sums of a tile's rows into scratch from `start` on; where K is blocked, it adds to
// the sums that are there.
void GemmEmitter::sum_fragments(const Panel& panel, Tile tile, const Expr& start, Block* block) {
  using kernel::StmtKind;
  const kernel::MmaDescriptor& mma = *gemm_.tile;
  tile.d =
      fragments("sum_tiles", mma.d, {gemm_.mr / kFragmentSide, gemm_.nv, mma.map_d.registers()});
  tile.a = fragments("a_tiles", mma.a, {gemm_.mr / kFragmentSide, mma.map_a.registers()});
  tile.b = fragments("b_tiles", mma.b, {gemm_.nv, mma.map_b.registers()});
  auto each = [&](StmtKind kind) {
    for (int64_t i = 0; i < tile.fragment_rows; ++i)
      for (int64_t v = 0; v < panel.vectors; ++v)
        block->push_back(move_fragment(kind, tile.d, {i, v}, sums_,
                                       start + Expr(i * kFragmentSide * width_ + v * kFragmentSide),
                                       width_));
  };
  each(block_.first ? StmtKind::fragment_clear : StmtKind::fragment_load);
  const Segment& rows = tile.rows->segments[0];
  emit_segment(panel, tile, {0, 1, 0, 1},
               {rows.k_low, rows.k_high, 0, tile.fragment_rows * kFragmentSide}, block);
  each(StmtKind::fragment_store);
}

// One step of the instruction's k, from `digits_` on.
void GemmEmitter::emit_fragment_step(const Panel& panel, const Tile& tile, int digit,
                                     Block* block) {
  using kernel::StmtKind;
  digits_[shape_.m] = tile.m0;
  const Expr a = substitute(a_at_, digits_, s_.scope_extents_) - a_base_;
  const int64_t row = a_at_.factor_of(shape_.m);
  const bool copied = gemm_.copy_b;
  const BufferId from = copied ? panel_ : input_of(shape_.b_load);
  const Expr b =
      copied ? k_linear() * width_ : operand(shape_.b_load) + panel.number * shape_.b_panel_stride;
  const int64_t apart = b_factor(digit) * (copied ? width_ : 1);
  for (int64_t v = 0; v < panel.vectors; ++v)
    block->push_back(move_fragment(StmtKind::fragment_load, tile.b, {v}, from,
                                   b + Expr(v * kFragmentSide), apart));
  for (int64_t i = 0; i < tile.fragment_rows; ++i) {
    block->push_back(move_fragment(StmtKind::fragment_load, tile.a, {i}, a_,
                                   a + Expr(i * kFragmentSide * row), row));
    for (int64_t v = 0; v < panel.vectors; ++v) {
      Stmt mma{StmtKind::mma};
      mma.name = gemm_.tile->name;
      mma.fragments = {tile.d, tile.a, tile.b, tile.d};
      for (int64_t at : {i, v, i, v, i, v}) mma.indices.push_back(k_.constant(at));
      block->push_back(std::move(mma));
    }
  }
}

// Applies the epilogue, row by row, to the tile's sums in scratch from `start` on.
void GemmEmitter::emit_rows(const Panel& panel, const Tile& tile, const Expr& start, Block* block) {
  if (any_turned_) return emit_turned_rows(panel, tile, start, block);
  const VarId i = k_.add_var("i");
  const Expr row = Expr::digit(s_.add_scope(i, tile.rows->rows));
  Block body;
  for (int v = 0; v < panel.vectors; ++v) {
    vector_ = v;
    const int64_t here = std::min<int64_t>(gemm_.lanes, panel.width - int64_t{v} * gemm_.lanes);
    const VarId l = k_.add_var("l");
    const Expr lane = Expr::digit(s_.add_scope(l, here));
    std::vector<Expr> digits(digits_.begin(),
                             digits_.begin() + static_cast<long>(stage_.out.size()));
    digits[shape_.m] = tile.m0 + row;
    digits[shape_.n] = panel.number * width_ + Expr(int64_t{v} * gemm_.lanes) + lane;
    const ExprId at = index(start + row * width_ + Expr(int64_t{v} * gemm_.lanes) + lane);
    body.push_back(lanes_loop(l, here, finished(digits, k_.load(sums_, {at}))));
  }
  block->push_back(make_loop(LoopKind::serial, i, k_.constant(tile.rows->rows), std::move(body)));
}

// The same where some outputs are stored along the rows: `kFragmentSide` rows at a time, in
// registers.
void GemmEmitter::emit_turned_rows(const Panel& panel, const Tile& tile, const Expr& start,
                                   Block* block) {
  for (int64_t first = 0; first < tile.rows->rows; first += kFragmentSide) {
    const Run run{0, 1, std::min(kFragmentSide, tile.rows->rows - first), {}};
    Tile part{nullptr, &run, tile.y0, tile.m0 + Expr(first), tile.number, {}};
    part.acc = sum_registers({run.rows, panel.vectors});
    const VarId l = k_.add_var("l");
    const Expr at = start + Expr(first * width_) + Expr::digit(s_.add_scope(l, gemm_.lanes));
    Block loads;
    for (int64_t row = 0; row < run.rows; ++row)
      for (int64_t v = 0; v < panel.vectors; ++v)
        loads.push_back(
            make_store(part.acc, {k_.constant(row), k_.constant(v)},
                       k_.load(sums_, {index(at + Expr(row * width_ + v * gemm_.lanes))})));
    block->push_back(lanes_loop(l, gemm_.lanes, std::move(loads)));
    emit_epilogue(panel, part, block);
  }
}

}  // namespace heddle::stitch
