// Reductions whose lanes run along an output digit.
#include <algorithm>

#include "stitch/row_emitter.h"

namespace heddle::stitch {

static constexpr int64_t kMostColumns = 16;  // accumulators of a block: vectors

// serial out digits { blocks of vectors { init; serial red digits { lanes }; write } }
void RowEmitter::emit_columns(Block* block) {
  HEDDLE_CHECK(members_.size() == 1, "column reductions are not joined");
  Member& member = members_[0];
  const Stage& stage = stage_of(member);
  std::vector<const stage::Own*> out, red;
  for (size_t i = 0; i + 1 < row_.own.size(); ++i)
    (row_.own[i].digits[0] < static_cast<int>(stage.out.size()) ? out : red)
        .push_back(&row_.own[i]);
  emit_columns_outer(out, red, 0, block);
}

void RowEmitter::emit_columns_outer(const std::vector<const stage::Own*>& out,
                                    const std::vector<const stage::Own*>& red, size_t level,
                                    Block* block) {
  Member& member = members_[0];
  if (level < out.size()) {
    int digit = out[level]->digits[0];
    VarId var = k_.add_var("i");
    Expr saved = member.digits[digit];
    member.digits[digit] = saved + Expr::digit(s_.add_scope(var, member.extents[digit]));
    Block body;
    emit_columns_outer(out, red, level + 1, &body);
    member.digits[digit] = saved;
    block->push_back(
        make_loop(LoopKind::serial, var, k_.constant(member.extents[digit]), std::move(body)));
    return;
  }
  int digit = row_.own.back().digits[0];
  int64_t extent = member.extents[digit];
  int64_t total = stage_of(member).out[digit].extent;
  int64_t step = 4 * int64_t{lanes_};
  Expr base = member.digits[digit];
  // In the last strip the lanes beyond the end are masked. A strip of few vectors is one block.
  const bool short_end = total % extent != 0 && !base.is_constant();
  const auto emit_block = [&](const Expr& from, int64_t width, Block* to) {
    ColumnBlock columns{from, width};
    if (short_end) columns = {from, width, s_.index_expr(from), total};
    emit_column_block(red, columns, to);
  };
  if (short_end && extent <= kMostColumns * lanes_) return emit_block(base, extent, block);
  int64_t blocks = extent / step, rest = extent - blocks * step;
  if (blocks > 0) {
    VarId var = k_.add_var("b");
    int scope = s_.add_scope(var, blocks);
    Block body;
    emit_block(base + Expr::digit(scope) * step, step, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(blocks), std::move(body)));
  }
  if (rest > 0) emit_block(base + Expr(blocks * step), rest, block);
}

void RowEmitter::each_vector(const ColumnBlock& columns,
                             const std::function<void(Stitcher::Context*, int, Block*)>& body,
                             Block* block) {
  Member& member = members_[0];
  Expr& digit = member.digits[row_.own.back().digits[0]];
  const Expr saved = digit;
  const int wide = row_.width;
  for (int c = 0; c < columns.vectors(lanes_ * wide); ++c) {
    const int64_t first = int64_t{c} * lanes_ * wide;
    const int64_t here = std::min<int64_t>(lanes_, (columns.width - first) / wide);
    const VarId l = k_.add_var("l");
    const Expr lane = Expr::digit(s_.add_scope(l, here)) * wide;
    Block inner;
    for (int i = 0; i < wide; ++i) {
      digit = columns.base + Expr(first + i) + lane;
      Stitcher::Context context = s_.context(member.stage, member.digits);
      body(&context, c * wide + i, &inner);
    }
    ExprId trips = k_.constant(here);
    if (columns.start.valid()) {
      ExprId left = k_.binary(Op::sub, k_.constant(columns.total - first), columns.start);
      if (wide > 1) left = k_.binary(Op::floor_div, left, k_.constant(wide));
      trips = k_.binary(Op::max, k_.constant(0), k_.binary(Op::min, trips, left));
    }
    block->push_back(make_loop(LoopKind::vector, l, trips, std::move(inner), lanes_));
  }
  digit = saved;
}

void RowEmitter::add_around(const std::vector<std::pair<VarId, ExprId>>& loops, Block body,
                            Block* block, LoopKind kind) {
  for (size_t i = loops.size(); i-- > 0;) {
    Block outer;
    outer.push_back(make_loop(kind, loops[i].first, loops[i].second, std::move(body)));
    kind = LoopKind::serial;
    body = std::move(outer);
  }
  for (Stmt& stmt : body) block->push_back(std::move(stmt));
}

void RowEmitter::emit_column_block(const std::vector<const stage::Own*>& red,
                                   const ColumnBlock& columns, Block* block) {
  Member& member = members_[0];
  const Stage& stage = stage_of(member);
  std::vector<BufferId> partials;
  for (size_t v = 0; v < stage.values.size(); ++v)
    partials.push_back(partial_buffer(stage, member.stage, static_cast<int>(v),
                                      columns.vectors(lanes_ * row_.width) * row_.width));
  auto load_all = [&](int c) {
    std::vector<ExprId> all;
    for (BufferId partial : partials) all.push_back(k_.load(partial, {k_.constant(c)}));
    return all;
  };
  auto store_all = [&](int c, const std::vector<ExprId>& values, Block* to) {
    for (size_t v = 0; v < values.size(); ++v)
      to->push_back(make_store(partials[v], {k_.constant(c)}, values[v]));
  };
  auto start = [&](Stitcher::Context* context, int c, Block* to) {
    bool neutral = true;
    store_all(c, starts(context, stage, &neutral), to);
  };
  each_vector(columns, start, block);
  const std::vector<Expr> saved = member.digits;
  std::vector<std::pair<VarId, ExprId>> loops;
  for (const stage::Own* own : red) {
    const int d = own->digits[0];
    const VarId var = k_.add_var("r");
    member.digits[d] = member.digits[d] + Expr::digit(s_.add_scope(var, member.extents[d]));
    loops.emplace_back(var, k_.constant(member.extents[d]));
  }
  auto add = [&](Stitcher::Context* context, int c, Block* to) {
    std::vector<ExprId> next = accumulate(context, stage, load_all(c));
    if (next.size() > 1) next = name_all(next, to);
    store_all(c, next, to);
  };
  Block body;
  each_vector(columns, add, &body);
  const bool shared = !red.empty() && columns.width <= 4 * int64_t{lanes_} &&
                      shares_loads(member, red.back()->digits[0], row_.own.back().digits[0]);
  add_around(loops, std::move(body), block, shared ? LoopKind::unrolled : LoopKind::serial);
  member.digits = saved;
  auto end = [&](Stitcher::Context*, int c, Block* to) {
    Member at = member;
    finish(&at, load_all(c), to);
  };
  each_vector(columns, end, block);
}

}  // namespace heddle::stitch
