// Scans: running sums of rows, and other cumulative combines, in order.
//
// Lanes along the scan:                       Lanes across it:
//   carry = init                                vector carries { carry[..] = init }
//   serial block { vector lane {                serial element { vector lane {
//     prefix of the lanes, by halves              carry[..] = carry[..] + x
//     value = carry + prefix                      value = carry[..]
//     carry = carry + sum of the lanes } }      } }
//   serial rest { carry = carry + x; … }
//
// Maps of the row read every value as it is computed. Where the order may not change
// (Stage::exact), all of the row is `rest`.
#include <algorithm>

#include "stitch/row_emitter.h"

namespace heddle::stitch {

namespace {

bool is_along(const Stage& stage, const stage::Own& own, size_t member) {
  return stage.scan >= 0 && own.digits[member] == stage.scan;
}

}  // namespace

// Iterations of the loops inside the scan's loop: one carry each.
int64_t RowEmitter::carries(const Member& member, size_t m, size_t level) const {
  int64_t count = 1;
  for (size_t i = level + 1; i < row_.own.size(); ++i)
    count *= member.extents[row_.own[i].digits[m]];
  return count;
}

void RowEmitter::start_scans(size_t level, Block* block) {
  const stage::Own& own = row_.own[level];
  for (size_t m = 0; m < members_.size(); ++m) {
    Member& member = members_[m];
    const Stage& stage = stage_of(member);
    if (!is_along(stage, own, m)) continue;
    const Type type = accumulation_type(stage.values[0].type);
    Stitcher::Context context = s_.context(member.stage, member.digits);
    const ExprId init = emit_op(&k_, hlo::Opcode::convert, type, nullptr,
                                {s_.node(&context, stage.values[0].init)});
    const bool in_lanes = level + 1 == row_.own.size();
    const int64_t count = carries(member, m, level);
    member.partials = {in_lanes
                           ? partial_buffer(stage, member.stage, 0, 1)
                           : k_.add_scratch(fmt::format("carry{}", member.stage), type, count)};
    const VarId l = k_.add_var("l");
    Block body;
    body.push_back(make_store(member.partials[0], {in_lanes ? k_.constant(0) : k_.ref(l)}, init));
    block->push_back(lanes_loop(l, in_lanes ? lanes_ : count, std::move(body)));
    if (!in_lanes) continue;
    kernel::Buffer last;  // the carry of the rest, element by element
    last.name = fmt::format("last{}", member.stage);
    last.type = type;
    last.extents = {1};
    last.space = kernel::Space::reg;
    member.partials.push_back(k_.add_buffer(last));
  }
}

bool RowEmitter::scans_along_lanes() const {
  for (size_t m = 0; m < members_.size(); ++m)
    if (is_along(stage_of(members_[m]), row_.own.back(), m)) return true;
  return false;
}

void RowEmitter::emit_scan_lanes(int64_t extent, Block* block) {
  bool exact = false, down = false;
  for (size_t m = 0; m < members_.size(); ++m) {
    const Stage& stage = stage_of(members_[m]);
    if (!is_along(stage, row_.own.back(), m)) continue;
    exact |= stage.exact;
    down |= stage.down;
  }
  const int64_t blocks = exact ? 0 : extent / lanes_, rest = extent - blocks * lanes_;
  if (blocks > 0) {
    const VarId i = k_.add_var("b"), l = k_.add_var("l");
    const int si = s_.add_scope(i, blocks), sl = s_.add_scope(l, lanes_);
    const Expr at =
        down ? Expr(extent - lanes_) - Expr::digit(si) * lanes_ : Expr::digit(si) * lanes_;
    Block body, inner;
    scan_lane_ = k_.ref(l);
    emit_point(at + Expr::digit(sl), k_.constant(0), &inner);
    scan_lane_ = {};
    body.push_back(lanes_loop(l, lanes_, std::move(inner)));
    block->push_back(make_loop(LoopKind::serial, i, k_.constant(blocks), std::move(body)));
  }
  if (rest == 0) return;
  for (size_t m = 0; m < members_.size(); ++m) {
    const Member& member = members_[m];
    if (!is_along(stage_of(member), row_.own.back(), m)) continue;
    const ExprId lanes = k_.load(member.partials[0], {k_.constant(0)});
    block->push_back(
        make_store(member.partials[1], {k_.constant(0)},
                   k_.add({Op::lane, k_.expr(lanes).type, {lanes}, 0, {}, {}, false})));
  }
  const VarId j = k_.add_var("j");
  const int sj = s_.add_scope(j, rest);
  Block body;
  emit_point(down ? Expr(rest - 1) - Expr::digit(sj) : Expr(blocks * lanes_) + Expr::digit(sj),
             k_.constant(0), &body);
  block->push_back(make_loop(LoopKind::serial, j, k_.constant(rest), std::move(body)));
}

// The scan's value at the point whose element is `x`; updates the carry.
ExprId RowEmitter::run_on(const Member& member, ExprId x, Block* block) {
  const Stage& stage = stage_of(member);
  const size_t m = static_cast<size_t>(&member - members_.data());
  const Type type = accumulation_type(stage.values[0].type);
  auto both = [&](ExprId a, ExprId b) { return name_all(combine(stage, {a}, {b}), block)[0]; };
  x = name_all({emit_op(&k_, hlo::Opcode::convert, type, nullptr, {x})}, block)[0];
  const bool in_lanes = is_along(stage, row_.own.back(), m);
  const BufferId carry = member.partials[in_lanes && !scan_lane_.valid() ? 1 : 0];
  ExprId at = k_.constant(0), sum = x;
  if (in_lanes && scan_lane_.valid()) {
    // `x` becomes the prefix within the vector, `sum` the sum of all lanes.
    for (int step = 1; step < lanes_; step *= 2) {
      const ExprId other =
          name_all({k_.add({Op::shuffle_xor, type, {sum}, step, {}, {}, false})}, block)[0];
      const ExprId upper = k_.binary(
          Op::floor_mod, k_.binary(Op::floor_div, scan_lane_, k_.constant(step)), k_.constant(2));
      const ExprId is_later = k_.compare(stage.down ? Op::eq : Op::ne, upper, k_.constant(0));
      x = name_all({k_.add({Op::select, type, {is_later, both(other, x), x}})}, block)[0];
      sum = both(sum, other);
    }
  } else if (!in_lanes) {
    // The point's linear index in the loops inside the scan's.
    Expr linear;
    size_t level = 0;
    while (row_.own[level].digits[m] != stage.scan) ++level;
    for (size_t i = level + 1; i < row_.own.size(); ++i)
      linear = linear * member.extents[row_.own[i].digits[m]] + scan_at_[i];
    at = s_.index_expr(linear);
  }
  const ExprId before = k_.load(carry, {at});
  const ExprId value = both(before, x);
  block->push_back(make_store(carry, {at}, in_lanes ? combine(stage, {before}, {sum})[0] : value));
  return emit_op(&k_, hlo::Opcode::convert, stage.values[0].type, nullptr, {value});
}

}  // namespace heddle::stitch
