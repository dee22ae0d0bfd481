// Reductions carried by a loop around their row: their accumulators are in the home of their value.
#include "stitch/row_emitter.h"

namespace heddle::stitch {

void RowEmitter::emit_start(Block* block) {
  find_members();
  for (size_t m = 0; m < members_.size(); ++m) {
    const Member& member = members_[m];
    if (!member.swept) continue;
    const Stage& stage = stage_of(member);
    const int lane = row_.own.empty() ? -1 : row_.own.back().digits[m];
    std::vector<Expr> digits = member.digits;
    std::vector<VarId> vars(stage.out.size());
    for (size_t d = 0; d < stage.out.size(); ++d) {
      if (member.extents[d] == 1) continue;
      vars[d] = k_.add_var(static_cast<int>(d) == lane ? "l" : "i");
      const int64_t wide = static_cast<int>(d) == lane ? row_.width : 1;
      digits[d] = digits[d] + Expr::digit(s_.add_scope(vars[d], member.extents[d] / wide)) * wide;
    }
    Block body;
    for (int c = 0; c < (lane < 0 ? 1 : row_.width); ++c) {
      std::vector<Expr> at_point = digits;
      if (c > 0)
        at_point[static_cast<size_t>(lane)] = at_point[static_cast<size_t>(lane)] + Expr(c);
      Stitcher::Context context = s_.context(member.stage, at_point);
      bool neutral = true;
      const std::vector<ExprId> first = starts(&context, stage, &neutral);
      for (size_t v = 0; v < first.size(); ++v) {
        const Home& home = s_.homes_[member.stage][v];
        const ExprId at = s_.index_expr(s_.place_in_buffer(member.stage, home, at_point));
        body.push_back(make_store(home.buffer, {at}, first[v]));
      }
    }
    auto around = [&](size_t d, LoopKind kind) {
      Block outer;
      const int64_t wide = kind == LoopKind::vector ? row_.width : 1;
      outer.push_back(make_loop(kind, vars[d], k_.constant(member.extents[d] / wide),
                                std::move(body), kind == LoopKind::vector ? lanes_ : 0));
      body = std::move(outer);
    };
    if (lane >= 0 && member.extents[static_cast<size_t>(lane)] > 1)
      around(static_cast<size_t>(lane), LoopKind::vector);
    for (size_t d = stage.out.size(); d-- > 0;)
      if (static_cast<int>(d) != lane && member.extents[d] > 1) around(d, LoopKind::serial);
    for (Stmt& stmt : body) block->push_back(std::move(stmt));
  }
}

void RowEmitter::sweep_value(Stitcher::Context* context, const Member& member,
                             const std::vector<Expr>& digits, Block* block) {
  const Stage& stage = stage_of(member);
  std::vector<ExprId> accumulators, at;
  for (size_t v = 0; v < stage.values.size(); ++v) {
    const Home& home = s_.homes_[member.stage][v];
    HEDDLE_CHECK(home.kind == Home::Kind::buffer, "{} is swept without a home", stage.name);
    at.push_back(s_.index_expr(s_.place_in_buffer(member.stage, home, digits)));
    accumulators.push_back(k_.load(home.buffer, {at.back()}));
  }
  std::vector<ExprId> next = accumulate(context, stage, accumulators);
  if (next.size() > 1) next = name_all(next, block);
  for (size_t v = 0; v < next.size(); ++v)
    block->push_back(make_store(s_.homes_[member.stage][v].buffer, {at[v]}, next[v]));
}

void emit_row_start(Stitcher* stitcher, int row, int lanes, Block* block) {
  RowEmitter(stitcher, row, lanes).emit_start(block);
}

}  // namespace heddle::stitch
