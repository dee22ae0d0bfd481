// Reductions whose lanes run along an output digit.
#include <algorithm>

#include "stitch/row_emitter.h"

namespace heddle::stitch {

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
  bool short_end = total % extent != 0 && !base.is_constant();
  if (short_end) {  // the last strip: as many vectors, the lanes beyond the end masked
    emit_column_block(red, base, extent, s_.index_expr(base), total, block);
    return;
  }
  int64_t blocks = extent / step, rest = extent - blocks * step;
  if (blocks > 0) {
    VarId var = k_.add_var("b");
    int scope = s_.add_scope(var, blocks);
    Block body;
    emit_column_block(red, base + Expr::digit(scope) * step, step, {}, 0, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(blocks), std::move(body)));
  }
  if (rest > 0) emit_column_block(red, base + Expr(blocks * step), rest, {}, 0, block);
}

// `width` columns from `base`; with `start` valid, only those below `total`.
void RowEmitter::emit_column_block(const std::vector<const stage::Own*>& red, const Expr& base,
                                   int64_t width, ExprId start, int64_t total, Block* block) {
  Member& member = members_[0];
  const Stage& stage = stage_of(member);
  int digit = row_.own.back().digits[0];
  Expr saved = member.digits[digit];
  int count = static_cast<int>((width + lanes_ - 1) / lanes_);
  std::vector<BufferId> partials;
  for (size_t v = 0; v < stage.values.size(); ++v)
    partials.push_back(partial_buffer(stage, member.stage, static_cast<int>(v), count));
  auto each_vector = [&](const std::function<void(Stitcher::Context*, int, Block*)>& body,
                         Block* to) {
    for (int c = 0; c < count; ++c) {
      int64_t here = std::min<int64_t>(lanes_, width - int64_t{c} * lanes_);
      VarId l = k_.add_var("l");
      int scope = s_.add_scope(l, here);
      member.digits[digit] = base + Expr(int64_t{c} * lanes_) + Expr::digit(scope);
      Stitcher::Context context = s_.context(member.stage, member.digits);
      Block inner;
      body(&context, c, &inner);
      ExprId trips = k_.constant(here);
      if (start.valid()) {
        ExprId left = k_.binary(Op::sub, k_.constant(total - int64_t{c} * lanes_), start);
        trips = k_.binary(Op::max, k_.constant(0), k_.binary(Op::min, trips, left));
      }
      to->push_back(make_loop(LoopKind::vector, l, trips, std::move(inner), lanes_));
    }
    member.digits[digit] = saved;
  };
  each_vector(
      [&](Stitcher::Context* context, int c, Block* to) {
        bool neutral = true;
        std::vector<ExprId> first = starts(context, stage, &neutral);
        for (size_t v = 0; v < first.size(); ++v)
          to->push_back(make_store(partials[v], {k_.constant(c)}, first[v]));
      },
      block);
  Block body;
  Block* inside = &body;
  std::vector<std::pair<VarId, int64_t>> loops;
  std::vector<Expr> saved_red;
  for (const stage::Own* own : red) {
    int d = own->digits[0];
    VarId var = k_.add_var("r");
    saved_red.push_back(member.digits[d]);
    member.digits[d] = member.digits[d] + Expr::digit(s_.add_scope(var, member.extents[d]));
    loops.emplace_back(var, member.extents[d]);
  }
  each_vector(
      [&](Stitcher::Context* context, int c, Block* to) {
        std::vector<ExprId> accumulators;
        for (BufferId partial : partials)
          accumulators.push_back(k_.load(partial, {k_.constant(c)}));
        std::vector<ExprId> next = accumulate(context, stage, accumulators);
        if (next.size() > 1) next = name_all(next, to);
        for (size_t v = 0; v < next.size(); ++v)
          to->push_back(make_store(partials[v], {k_.constant(c)}, next[v]));
      },
      inside);
  for (size_t i = loops.size(); i-- > 0;) {
    Block outer;
    outer.push_back(
        make_loop(LoopKind::serial, loops[i].first, k_.constant(loops[i].second), std::move(body)));
    body = std::move(outer);
  }
  for (size_t i = 0; i < red.size(); ++i) member.digits[red[i]->digits[0]] = saved_red[i];
  for (Stmt& stmt : body) block->push_back(std::move(stmt));
  each_vector(
      [&](Stitcher::Context*, int c, Block* to) {
        std::vector<ExprId> results;
        for (BufferId partial : partials) results.push_back(k_.load(partial, {k_.constant(c)}));
        Member at = member;
        finish(&at, results, to);
      },
      block);
  member.digits[digit] = saved;
}

}  // namespace heddle::stitch
