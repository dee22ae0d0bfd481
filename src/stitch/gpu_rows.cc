// The parts of RowEmitter that differ where lanes are the threads of a GPU.
#include <algorithm>

#include "stitch/row_emitter.h"

namespace heddle::stitch {

bool RowEmitter::is_gpu() const { return s_.target_.kind == target::DeviceKind::gpu; }

// The lanes that can exchange values: all on a CPU, those of a subgroup on a GPU.
int RowEmitter::shuffled_lanes() const {
  return is_gpu() ? std::min(lanes_, s_.target_.warp_size) : lanes_;
}

// Each lane takes `width` adjacent elements, each with an accumulator of its own.
void RowEmitter::emit_wide_lanes(int64_t extent, Block* block) {
  const int64_t step = int64_t{lanes_} * row_.width;
  const int64_t blocks = extent / step, rest = extent - blocks * step;
  const Member& member = members_[0];
  const int digit = row_.own.back().digits[0];
  const int64_t total = stage_of(member).extents()[digit];
  // A driven digit's last strip may be shorter.
  const bool shorter = total % extent != 0 && !member.digits[digit].is_constant();
  if (shorter) {
    const VarId l = k_.add_var("l");
    const ExprId left =
        k_.binary(Op::min, k_.constant(extent),
                  k_.binary(Op::sub, k_.constant(total), s_.index_expr(member.digits[digit])));
    Block body;
    emit_wide_points(Expr(0), l, extent / row_.width, &body);
    block->push_back(make_loop(LoopKind::vector, l,
                               k_.binary(Op::floor_div, left, k_.constant(row_.width)),
                               std::move(body), lanes_));
    return;
  }
  if (blocks > 0) {
    const VarId b = k_.add_var("b"), l = k_.add_var("l");
    const int scope = s_.add_scope(b, blocks);
    Block body, outer;
    emit_wide_points(Expr::digit(scope) * step, l, lanes_, &body);
    outer.push_back(lanes_loop(l, lanes_, std::move(body)));
    block->push_back(make_loop(LoopKind::serial, b, k_.constant(blocks), std::move(outer)));
  }
  if (rest > 0) {
    const VarId l = k_.add_var("l");
    Block body;
    emit_wide_points(Expr(blocks * step), l, rest / row_.width, &body);
    block->push_back(lanes_loop(l, rest / row_.width, std::move(body)));
  }
}

void RowEmitter::emit_wide_points(const Expr& first, VarId lane, int64_t lanes, Block* block) {
  const int scope = s_.add_scope(lane, lanes);
  for (int c = 0; c < row_.width; ++c)
    emit_point(first + Expr::digit(scope) * row_.width + Expr(c), k_.constant(c), block);
}

// The partial results of the subgroups, in lane 0 of each, go through scratch; every thread
// combines them in the same order. `body` has combined the lanes of a subgroup, `lane` is its loop.
std::vector<ExprId> RowEmitter::combine_subgroups(const Member& member, VarId lane, Block body,
                                                  Block* block) {
  const Stage& stage = stage_of(member);
  const int subgroups = lanes_ / s_.target_.warp_size;
  const ExprId warp_size = k_.constant(s_.target_.warp_size);
  std::vector<BufferId> parts;
  for (size_t v = 0; v < member.partials.size(); ++v) {
    const Type type = k_.buffer(member.partials[v]).type;
    parts.push_back(k_.add_scratch(fmt::format("part{}", member.stage), type, subgroups));
    const ExprId first =
        k_.compare(Op::eq, k_.binary(Op::floor_mod, k_.ref(lane), warp_size), k_.constant(0));
    body.push_back(make_store(parts[v], {k_.binary(Op::floor_div, k_.ref(lane), warp_size)},
                              k_.load(member.partials[v], {k_.constant(0)}), first));
  }
  block->push_back(lanes_loop(lane, lanes_, std::move(body)));
  std::vector<ExprId> results;
  for (int s = 0; s < subgroups; ++s) {
    std::vector<ExprId> loaded;
    for (BufferId part : parts) loaded.push_back(k_.load(part, {k_.constant(s)}));
    loaded = name_all(loaded, block);
    results = s == 0 ? loaded : name_all(combine(stage, results, loaded), block);
  }
  return results;
}

// Reads a square along one digit, writes it to scratch, and reads it from there along the other
// digit. Rows are padded by one element, so that lanes along a column use different banks.
void RowEmitter::load_square_through_scratch(const stage::Load& load, BufferId from,
                                             BufferId turned, const Square& square, Block* block) {
  const int64_t pitch = lanes_ + 1;
  if (!turn_tile_.valid())
    turn_tile_ = k_.add_scratch("tile", k_.buffer(from).type, lanes_ * pitch);
  VarId l = k_.add_var("l");
  const Expr lane = Expr::digit(s_.add_scope(l, square.rows));
  Block body;
  for (int64_t c = 0; c < square.columns; ++c) {
    std::vector<Expr> digits = members_[0].digits;
    digits[square.across] = digits[square.across] + Expr(c);
    digits[square.along] = digits[square.along] + lane;
    const ExprId at = s_.index_expr(substitute(load.coordinates[0], digits, s_.scope_extents_));
    body.push_back(
        make_store(turn_tile_, {s_.index_expr(Expr(c * pitch) + lane)}, k_.load(from, {at})));
  }
  block->push_back(lanes_loop(l, square.rows, std::move(body)));
  VarId column = k_.add_var("l");
  const Expr across = Expr::digit(s_.add_scope(column, square.columns));
  Block back;
  for (int64_t r = 0; r < square.rows; ++r)
    back.push_back(make_store(turned, {k_.constant(r)},
                              k_.load(turn_tile_, {s_.index_expr(across * pitch + Expr(r))})));
  block->push_back(lanes_loop(column, square.columns, std::move(back)));
}

}  // namespace heddle::stitch
