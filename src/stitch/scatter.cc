// Scatter of rows into a table. The updates of a row keep their order, with any number of tasks.
//
//   vector element of the task's rows { table = init }       (else it is there)
//   serial update { row = index; if (row is the task's) vector element { table[row] += update } }
//   the same for the next scatter into the table
#include <algorithm>

#include "hlo/combiner.h"
#include "stitch/row_emitter.h"

namespace heddle::stitch {

void RowEmitter::emit_scatters(Block* block) {
  const Member& first = members_[0];
  const int64_t total = stage_of(first).out[0].extent, each = first.extents[0];
  OwnRows own{s_.index_expr(first.digits[0]), k_.constant(each)};
  if (total % each != 0)
    own.count = k_.binary(Op::min, own.count, k_.binary(Op::sub, k_.constant(total), own.low));
  own.low = named("low", own.low, block);
  // A number is left in place: where the table is dynamic, loops over it stop (lower/trim.h).
  if (total % each != 0) own.count = named("count", own.count, block);
  if (stage_of(first).values[0].init >= 0) start_rows(own, block);
  for (const Member& member : members_) look_through(member, own, block);
}

ExprId RowEmitter::place_in_table(const std::vector<Expr>& digits) {
  return s_.index_expr(substitute(stage_of(members_.back()).position, digits, s_.scope_extents_));
}

// All elements as one digit, so that vectors are full.
void RowEmitter::start_rows(const OwnRows& own, Block* block) {
  const Member& first = members_[0];
  const Stage& stage = stage_of(first);
  const int64_t width = stage.out_elems() / stage.out[0].extent;
  const VarId i = k_.add_var("i");
  const Expr at = Expr::digit(s_.add_scope(i, first.extents[0] * width));
  std::vector<Expr> digits = first.digits;
  int64_t inside = width;
  for (size_t d = 0; d < stage.out.size(); ++d) {
    const Expr digit = floor_div(at, inside, s_.scope_extents_);
    if (d == 0)
      digits[d] = digits[d] + digit;
    else
      digits[d] = mod(digit, stage.out[d].extent, s_.scope_extents_);
    if (d + 1 < stage.out.size()) inside /= stage.out[d + 1].extent;
  }
  Stitcher::Context context = s_.context(first.stage, digits);
  const ExprId init = s_.node(&context, stage.values[0].init);
  Block body;
  body.push_back(make_store(s_.outputs_.at(0), {place_in_table(digits)}, init));
  block->push_back(make_loop(LoopKind::vector, i, k_.binary(Op::mul, own.count, k_.constant(width)),
                             std::move(body), lanes_));
}

void RowEmitter::look_through(const Member& member, const OwnRows& own, Block* block) {
  const Stage& stage = stage_of(member);
  const size_t out = stage.out.size();
  std::vector<Expr> digits = member.digits;
  std::vector<std::pair<VarId, ExprId>> updates;
  for (size_t r = 0; r < stage.red.size(); ++r) {
    updates.emplace_back(k_.add_var("update"), k_.constant(stage.red[r].extent));
    digits[out + r] = Expr::digit(s_.add_scope(updates.back().first, stage.red[r].extent));
  }
  Stitcher::Context at_index = s_.context(member.stage, digits);
  const VarId row = k_.add_var("row");
  Block body, inner;
  body.push_back(make_let(row, s_.node(&at_index, stage.scatter)));
  digits[0] = Expr::digit(s_.add_scope(row, stage.out[0].extent));
  std::vector<std::pair<VarId, ExprId>> inside;
  for (size_t d = 1; d < out; ++d) {
    inside.emplace_back(k_.add_var("i"), k_.constant(stage.out[d].extent));
    digits[d] = Expr::digit(s_.add_scope(inside.back().first, stage.out[d].extent));
  }
  Stitcher::Context context = s_.context(member.stage, digits);
  ExprId x = s_.node(&context, stage.values[0].result);
  const ExprId place = place_in_table(digits);
  const BufferId table = s_.outputs_.at(0);
  if (stage.combine)
    x = emit_op(&k_, *hlo::combiner_of(*stage.combine), stage.values[0].type, stage.combine->root(),
                {k_.load(table, {place}), x});
  inner.push_back(make_store(table, {place}, x));
  if (!inside.empty()) {
    const auto [var, trips] = inside.back();
    inside.pop_back();
    Block lanes;
    lanes.push_back(make_loop(LoopKind::vector, var, trips, std::move(inner), lanes_));
    inner.clear();
    add_around(inside, std::move(lanes), &inner);
  }
  const ExprId here = k_.binary(Op::sub, k_.ref(row), own.low);
  body.push_back(make_if(k_.binary(Op::and_, k_.compare(Op::ge, here, k_.constant(0)),
                                   k_.compare(Op::lt, here, own.count)),
                         std::move(inner)));
  add_around(updates, std::move(body), block);
}

}  // namespace heddle::stitch
