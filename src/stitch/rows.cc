// Rows of joined stages: serial loops around one vector loop; reductions keep partial results in
// registers, one per lane and unrolled step, and combine them in a fixed tree (numerics: the order
// depends on shape and target only).
#include <algorithm>
#include <set>

#include "schedule/phases.h"
#include "stage/top_k.h"
#include "stitch/row_emitter.h"

namespace heddle::stitch {

void RowEmitter::emit(Block* block) {
  find_members();
  emit_members(block);
}

void RowEmitter::find_members() {
  for (StageId id : row_.joined) {
    Member member;
    member.stage = static_cast<int>(id.index());
    const Stage& stage = graph().stages[member.stage];
    const stage::Placed& placed = s_.placed_.placement.stages[member.stage];
    std::vector<Expr> loops;
    for (int scope : s_.loop_scope_) loops.push_back(scope >= 0 ? Expr::digit(scope) : Expr(0));
    for (size_t d = 0; d < stage.out.size(); ++d) {
      member.digits.push_back(substitute(placed.need[d].offset, loops, s_.scope_extents_));
      member.extents.push_back(placed.need[d].extent);
    }
    member.swept = stage::is_swept(s_.placed_, id.index());
    for (size_t r = 0; r < stage.red.size(); ++r) {
      Expr from(0);
      int64_t extent = stage.red[r].extent;
      for (int number : placed.path) {
        const auto& loop = std::get<stage::Loop>(s_.placed_.schedule.nodes[number]);
        for (const stage::Drive& drive : loop.drives) {
          if (!(drive.stage == id) || drive.digit != static_cast<int>(stage.out.size() + r))
            continue;
          from = from + loops[number] * drive.by;
          extent = std::min(extent, drive.by);
        }
      }
      member.digits.push_back(from);
      member.extents.push_back(extent);
    }
    members_.push_back(std::move(member));
  }
}

void RowEmitter::emit_at(const std::vector<std::vector<Expr>>& digits, Block* block) {
  for (StageId id : row_.joined) {
    Member member;
    member.stage = static_cast<int>(id.index());
    member.digits = digits.at(id.index());
    for (const index::Interval& interval : s_.placed_.placement.stages[id.index()].need)
      member.extents.push_back(interval.extent);
    for (const stage::Digit& digit : graph().stage(id).red) {
      member.digits.push_back(Expr(0));
      member.extents.push_back(digit.extent);
    }
    members_.push_back(std::move(member));
  }
  emit_members(block);
}

void RowEmitter::emit_members(Block* block) {
  scan_at_.resize(row_.own.size());
  if (stage::is_top_k(stage_of(members_[0]))) return emit_top_k(block);
  if (stage_of(members_[0]).scatter >= 0) return emit_scatters(block);
  const bool has_vector = !row_.own.empty() && row_.own.back().kind == stage::LoopKind::vector;
  if (!has_vector) return emit_scalar(block);
  if (row_.turn()) return emit_turn(block);
  if (std::any_of(row_.own.begin(), row_.own.end(),
                  [](const stage::Own& own) { return own.kind == stage::LoopKind::unrolled; }))
    return emit_window(block);
  int lane_digit = row_.own.back().digits[0];
  if (accumulates(members_[0]) && lane_digit < static_cast<int>(stage_of(members_[0]).out.size()))
    return emit_columns(block);
  chains_ = 0;
  if (row_.own.size() > 1) {
    const int digit = row_.own[row_.own.size() - 2].digits[0];
    const int64_t steps = members_[0].extents[digit];
    if ((steps & (steps - 1)) == 0 && shares_loads(members_[0], digit, lane_digit))
      chains_ = static_cast<int>(steps);
  }
  emit_level(0, block);
}

void RowEmitter::emit_scalar(Block* block) {
  HEDDLE_CHECK(row_.own.empty(), "serial loops without lanes");
  for (Member& member : members_) {
    const Stage& stage = stage_of(member);
    Stitcher::Context context = s_.context(member.stage, member.digits);
    if (member.swept) {
      sweep_value(&context, member, member.digits, block);
      continue;
    }
    if (!stage.is_reduction()) {
      for (size_t v = 0; v < stage.values.size(); ++v)
        keep(&member, static_cast<int>(v), s_.node(&context, stage.values[v].result), block);
      continue;
    }
    bool neutral = true;
    std::vector<ExprId> first = starts(&context, stage, &neutral);
    finish(&member, accumulate(&context, stage, first), block);
  }
}

void RowEmitter::emit_level(size_t level, Block* block) {
  for (size_t m = 0; m < members_.size(); ++m)
    if (accumulates(members_[m]) && reduced_from(m) == level) init_partials(m, block);
  start_scans(level, block);
  if (level + 1 == row_.own.size()) {
    emit_lanes(block);
  } else {
    const stage::Own& own = row_.own[level];
    int64_t trips = members_[0].extents[own.digits[0]];
    VarId var = k_.add_var("i");
    int scope = s_.add_scope(var, trips);
    const bool chained = level + 2 == row_.own.size() && chains_ > 0;
    if (chained) chain_ = k_.ref(var);
    const std::vector<Member> saved = members_;
    const bool down = std::any_of(members_.begin(), members_.end(),
                                  [&](const Member& member) { return stage_of(member).down; });
    scan_at_[level] = down ? Expr(trips - 1) - Expr::digit(scope) : Expr::digit(scope);
    for (size_t m = 0; m < members_.size(); ++m) {
      Expr& digit = members_[m].digits[own.digits[m]];
      digit = digit + scan_at_[level];
    }
    Block body;
    emit_level(level + 1, &body);
    for (size_t m = 0; m < members_.size(); ++m) members_[m].digits = saved[m].digits;
    block->push_back(make_loop(chained ? LoopKind::unrolled : LoopKind::serial, var,
                               k_.constant(trips), std::move(body)));
    if (chained) chain_ = ExprId();
  }
  for (size_t m = 0; m < members_.size(); ++m)
    if (accumulates(members_[m]) && reduced_from(m) == level) combine_partials(m, block);
}

// Number of a member's separate sums: per unrolled vector, and per step of the digit around these.
int RowEmitter::slots(size_t m) const {
  return unroll() * (reduced_from(m) + 1 < row_.own.size() ? std::max(1, chains_) : 1);
}

// Whether the few steps of a digit around the lanes have a load in common, to be done once.
bool RowEmitter::shares_loads(const Member& member, int digit, int lane) const {
  constexpr int64_t kFewSteps = 8;
  const Stage& stage = stage_of(member);
  if (is_gpu() || digit < static_cast<int>(stage.out.size()) || member.extents[digit] > kFewSteps ||
      member.extents[lane] > int64_t{4} * lanes_)
    return false;
  const auto uses = [](const stage::Load& load, int d) {
    return std::any_of(load.coordinates.begin(), load.coordinates.end(),
                       [&](const Expr& x) { return x.uses(d); });
  };
  return std::any_of(stage.loads.begin(), stage.loads.end(), [&](const stage::Load& load) {
    return uses(load, lane) && !uses(load, digit);
  });
}

int RowEmitter::unroll() const {
  return static_cast<int>(std::max<int64_t>(1, row_.own.back().by / lanes_));
}

void RowEmitter::init_partials(size_t m, Block* block) {
  Member& member = members_[m];
  const Stage& stage = stage_of(member);
  Stitcher::Context context = s_.context(member.stage, member.digits);
  bool neutral = true;
  std::vector<ExprId> first = starts(&context, stage, &neutral);
  if (member.partials.empty()) {
    for (size_t v = 0; v < stage.values.size(); ++v)
      member.partials.push_back(partial_buffer(stage, member.stage, static_cast<int>(v), slots(m)));
  }
  Block body;
  VarId u = k_.add_var("u"), l = k_.add_var("l");
  for (size_t v = 0; v < stage.values.size(); ++v)
    body.push_back(make_store(member.partials[v], {k_.ref(u)}, first[v]));
  block->push_back(unrolled(u, slots(m), lanes_loop(l, lanes_, std::move(body))));
}

void RowEmitter::emit_lanes(Block* block) {
  const stage::Own& own = row_.own.back();
  int64_t extent = members_[0].extents[own.digits[0]];
  const bool any = std::any_of(members_.begin(), members_.end(),
                               [&](const Member& member) { return accumulates(member); });
  name_shared(block);
  if (scans_along_lanes()) return emit_scan_lanes(extent, block);
  if (row_.width > 1) return emit_wide_lanes(extent, block);
  if (!any) return emit_whole_lanes(extent, block);
  int64_t step = int64_t{lanes_} * unroll();
  int64_t blocks = extent / step, rest = extent - blocks * step;
  if (blocks > 0) {
    VarId i = k_.add_var("b"), u = k_.add_var("u"), l = k_.add_var("l");
    int si = s_.add_scope(i, blocks), su = s_.add_scope(u, unroll()), sl = s_.add_scope(l, lanes_);
    Block body;
    emit_point(Expr::digit(si) * step + Expr::digit(su) * lanes_ + Expr::digit(sl), k_.ref(u),
               &body);
    Block outer;
    outer.push_back(unrolled(u, unroll(), lanes_loop(l, lanes_, std::move(body))));
    block->push_back(make_loop(LoopKind::serial, i, k_.constant(blocks), std::move(outer)));
  }
  if (rest > 0) {
    VarId l = k_.add_var("l");
    int sl = s_.add_scope(l, rest);
    Block body;
    emit_point(Expr(blocks * step) + Expr::digit(sl), k_.constant(0), &body);
    block->push_back(lanes_loop(l, rest, std::move(body)));
  }
}

// Otherwise values that depend on memory are computed again for every vector.
void RowEmitter::name_shared(Block* block) {
  if (is_gpu()) return;
  for (size_t m = 0; m < members_.size(); ++m) {
    Member& member = members_[m];
    const int lane = row_.own.back().digits[m];
    member.shared.clear();
    Stitcher::Context context = s_.context(member.stage, member.digits);
    if (lane < 0 || !context.inside.empty()) continue;
    const Stage& stage = stage_of(member);
    std::vector<char> shared(stage.nodes.size(), 0), loads(stage.nodes.size(), 0);
    for (size_t n = 0; n < stage.nodes.size(); ++n) {
      const Node& node = stage.nodes[n];
      if (node.kind == Node::Kind::constant) shared[n] = 1;
      if (node.kind == Node::Kind::load) {
        const stage::Load& load = stage.loads[static_cast<size_t>(node.load)];
        loads[n] = 1;
        shared[n] = load.guards.empty() &&
                    std::none_of(load.coordinates.begin(), load.coordinates.end(),
                                 [&](const Expr& x) { return x.uses(lane) || x.uses_runtime(); });
      }
      if (node.kind != Node::Kind::op) continue;
      shared[n] = std::all_of(node.operands.begin(), node.operands.end(),
                              [&](int operand) { return shared[static_cast<size_t>(operand)]; });
      for (int operand : node.operands) loads[n] |= loads[static_cast<size_t>(operand)];
      // Indices of gathers stay in the loop, where the prefetch pass finds them.
      if (!shared[n] || !loads[n] || !tensor::is_float(node.type)) continue;
      const ExprId value = s_.node(&context, static_cast<int>(n));
      const kernel::Op op = k_.expr(value).op;
      if (op == Op::var || op == Op::constant) continue;
      const ExprId named = name_all({value}, block)[0];
      context.memo[static_cast<int>(n)] = named;
      member.shared.emplace(static_cast<int>(n), named);
    }
  }
}

// The number of the lanes' row, where rows are merged, if the value contains nothing else; or null.
static const index::Term* only_quotient(const Expr& value, int digit) {
  if (value.terms().size() != 1) return nullptr;
  const index::Term& term = value.terms()[0];
  const bool rows = term.atom.kind == index::Atom::Kind::quotient && term.atom.inner &&
                    *term.atom.inner == Expr::digit(digit);
  return rows ? &term : nullptr;
}

// The points where the lanes enter or leave a guard (a part of a concatenation, a pad): in a loop
// between two of them the guard is constant. Parts of a few elements are left to masks.
std::vector<int64_t> RowEmitter::lane_breaks(int64_t extent) {
  std::set<int64_t> breaks{0, extent};
  for (size_t m = 0; m < members_.size(); ++m) {
    const Member& member = members_[m];
    const int digit = row_.own.back().digits[m];
    auto add = [&](const std::vector<index::Guard>& guards) {
      for (const index::Guard& guard : guards) {
        int64_t step = guard.value.factor_of(digit), width = 1;
        const Expr rest = s_.in_scope(s_.context(member.stage, member.digits), guard.value);
        if (const index::Term* rows = only_quotient(guard.value, digit)) {
          step = rows->factor;
          width = rows->atom.by;
        } else if (!guard.value.is_affine()) {
          continue;
        }
        if (step <= 0 || !rest.is_constant()) continue;
        for (int64_t bound : {guard.low, guard.high}) {
          const int64_t at = (bound - rest.constant() + step - 1) / step * width;
          if (at > 0 && at < extent) breaks.insert(at);
        }
      }
    };
    for (const stage::Load& load : stage_of(member).loads) add(load.guards);
    for (const Node& node : stage_of(member).nodes) add(node.guards);
  }
  const auto parts = static_cast<int64_t>(breaks.size()) - 1;
  if (parts > 48 || extent < parts * lanes_ / 2) return {0, extent};
  return {breaks.begin(), breaks.end()};
}

// Whether rows have been merged into one (schedule: fill_lanes): unrolled, every vector knows the
// row of each of its lanes.
bool RowEmitter::has_rows_in_lanes(int64_t extent) const {
  constexpr int64_t kMostStraight = 512;  // vectors that are written out
  if (extent % lanes_ != 0 || extent / lanes_ > kMostStraight) return false;
  for (size_t m = 0; m < members_.size(); ++m) {
    const int digit = row_.own.back().digits[m];
    for (const stage::Load& load : stage_of(members_[m]).loads)
      for (const Expr& x : load.coordinates)
        for (const index::Term& term : x.terms())
          if (term.atom.kind == index::Atom::Kind::quotient && term.atom.by > lanes_ &&
              term.atom.by < extent && term.atom.by % lanes_ != 0 && term.atom.inner->uses(digit))
            return true;
  }
  return false;
}

void RowEmitter::emit_straight_lanes(int64_t extent, Block* block) {
  const VarId u = k_.add_var("u"), l = k_.add_var("l");
  const int su = s_.add_scope(u, extent / lanes_), sl = s_.add_scope(l, lanes_);
  Block body;
  emit_point(Expr::digit(su) * lanes_ + Expr::digit(sl), k_.constant(0), &body);
  block->push_back(unrolled(u, extent / lanes_, lanes_loop(l, lanes_, std::move(body))));
}

// Maps only.
void RowEmitter::emit_whole_lanes(int64_t extent, Block* block) {
  if (has_rows_in_lanes(extent)) return emit_straight_lanes(extent, block);
  const std::vector<int64_t> breaks = lane_breaks(extent);
  if (breaks.size() == 2) return emit_unbroken_lanes(extent, block);
  for (size_t i = 0; i + 1 < breaks.size(); ++i) {
    VarId l = k_.add_var("l");
    const int64_t here = breaks[i + 1] - breaks[i];
    const int scope = s_.add_scope(l, here);
    Block body;
    emit_point(Expr(breaks[i]) + Expr::digit(scope), k_.constant(0), &body);
    block->push_back(
        make_loop(LoopKind::vector, l, k_.constant(here), std::move(body), wide_lanes(here)));
  }
}

// One loop over everything; a driven digit's last strip may be shorter.
void RowEmitter::emit_unbroken_lanes(int64_t extent, Block* block) {
  VarId l = k_.add_var("l");
  int sl = s_.add_scope(l, extent);
  ExprId trips = k_.constant(extent);
  const Member& member = members_[0];
  int digit = row_.own.back().digits[0];
  int64_t total = stage_of(member).extents()[digit];
  if (total % extent != 0 && !member.digits[digit].is_constant())
    trips = k_.binary(Op::min, trips,
                      k_.binary(Op::sub, k_.constant(total), s_.index_expr(member.digits[digit])));
  Block body;
  emit_point(Expr::digit(sl), k_.constant(0), &body);
  block->push_back(make_loop(LoopKind::vector, l, trips, std::move(body), wide_lanes(extent)));
}

// Bytes of the widest number that the row reads, computes (small floats as f32) or stores.
int64_t RowEmitter::widest_bytes() const {
  int64_t bytes = 1;
  for (const Member& member : members_) {
    for (const Node& node : stage_of(member).nodes) {
      if (node.kind == Node::Kind::guard) continue;
      const bool computes = node.kind == Node::Kind::op && node.opcode != hlo::Opcode::select;
      const Type type = computes ? accumulation_type(node.type) : node.type;
      bytes = std::max(bytes, tensor::type_bytes(type));
    }
    for (const stage::Value& value : stage_of(member).values)
      bytes = std::max(bytes, tensor::type_bytes(value.type));
  }
  return bytes;
}

// The number of lanes that fill whole vectors of the narrowest output that is stored past the
// caches, or of the widest type of the row, if it divides the extent.
int RowEmitter::wide_lanes(int64_t extent) const {
  int64_t bytes = std::min<int64_t>(4, widest_bytes());
  for (const Member& member : members_) {
    for (const Node& node : stage_of(member).nodes)
      if (tensor::type_bytes(node.type) > 4 && node.kind == Node::Kind::op) return lanes_;
    for (const stage::Value& value : stage_of(member).values)
      if (value.output >= 0 && s_.streamed_[static_cast<size_t>(value.output)])
        bytes = std::min(bytes, tensor::type_bytes(value.type));
  }
  const int64_t wide = lanes_ * 4 / bytes;
  return !is_gpu() && wide <= 64 && extent % wide == 0 ? static_cast<int>(wide) : lanes_;
}

// All members at one iteration of the lanes; `slot` is the unrolled accumulator.
void RowEmitter::emit_point(const Expr& lane, ExprId slot, Block* block) {
  const stage::Own& own = row_.own.back();
  scan_at_.back() = lane;
  std::vector<std::pair<int, std::vector<Home>>> saved;
  for (size_t m = 0; m < members_.size(); ++m) {
    Member& member = members_[m];
    const Stage& stage = stage_of(member);
    std::vector<Expr> digits = member.digits;
    digits[own.digits[m]] = digits[own.digits[m]] + lane;
    Stitcher::Context context = s_.context(member.stage, digits);
    context.memo.insert(member.shared.begin(), member.shared.end());
    if (member.swept) {
      sweep_value(&context, member, digits, block);
      continue;
    }
    if (!stage.is_reduction()) {
      saved.emplace_back(member.stage, s_.homes_[member.stage]);
      for (size_t v = 0; v < stage.values.size(); ++v)
        map_value(&context, member, static_cast<int>(v), digits, block);
      continue;
    }
    ExprId at = slot;
    if (chain_.valid() && slots(m) > unroll())
      at = k_.binary(Op::add, k_.binary(Op::mul, chain_, k_.constant(unroll())), slot);
    std::vector<ExprId> accumulators;
    for (BufferId partial : member.partials) accumulators.push_back(k_.load(partial, {at}));
    std::vector<ExprId> next = accumulate(&context, stage, accumulators);
    if (next.size() > 1) next = name_all(next, block);
    for (size_t v = 0; v < next.size(); ++v)
      block->push_back(make_store(member.partials[v], {at}, next[v]));
  }
  for (auto& [stage, homes] : saved) s_.homes_[stage] = homes;
}

void RowEmitter::map_value(Stitcher::Context* context, const Member& member, int value,
                           const std::vector<Expr>& digits, Block* block) {
  const Stage& stage = stage_of(member);
  ExprId x = s_.node(context, stage.values[value].result);
  if (stage.scan >= 0) x = run_on(member, x, block);
  if (members_.size() > 1 || s_.homes_[member.stage][value].kind == Home::Kind::buffer) {
    VarId var = k_.add_var(fmt::format("v{}", member.stage), k_.expr(x).type);
    block->push_back(make_let(var, x));
    x = k_.ref(var);
  }
  s_.store_value(member.stage, value, digits, x, block);
  // Later members read this value.
  s_.homes_[member.stage][value] = {Home::Kind::current, x, {}, false, false};
}

// Unrolled steps, then lanes, by halves.
void RowEmitter::combine_partials(size_t m, Block* block) {
  Member& member = members_[m];
  const Stage& stage = stage_of(member);
  VarId l = k_.add_var("l");
  Block body;
  auto step = [&](int64_t slot, const std::vector<ExprId>& others) {
    std::vector<ExprId> mine;
    for (BufferId partial : member.partials) mine.push_back(k_.load(partial, {k_.constant(slot)}));
    std::vector<ExprId> next = combine(stage, mine, others);
    if (next.size() > 1) next = name_all(next, &body);
    for (size_t v = 0; v < next.size(); ++v)
      body.push_back(make_store(member.partials[v], {k_.constant(slot)}, next[v]));
  };
  for (int half = slots(m) / 2; half > 0; half /= 2) {
    for (int slot = 0; slot < half; ++slot) {
      std::vector<ExprId> others;
      for (BufferId partial : member.partials)
        others.push_back(k_.load(partial, {k_.constant(slot + half)}));
      step(slot, others);
    }
  }
  const std::optional<Extreme> extreme =
      stage.combine && !is_gpu() && lanes_ > 2 ? extreme_of(*stage.combine) : std::nullopt;
  if (extreme) combine_lanes(member, *extreme, &body);
  for (int distance = extreme ? 0 : shuffled_lanes() / 2; distance > 0; distance /= 2) {
    std::vector<ExprId> others;
    for (BufferId partial : member.partials) {
      ExprId own = k_.load(partial, {k_.constant(0)});
      others.push_back(
          k_.add({Op::shuffle_xor, k_.expr(own).type, {own}, distance, {}, {}, false}));
    }
    if (others.size() > 1) others = name_all(others, &body);
    step(0, others);
  }
  if (shuffled_lanes() < lanes_)
    return finish(&member, combine_subgroups(member, l, std::move(body), block), block);
  if (!body.empty()) block->push_back(lanes_loop(l, lanes_, std::move(body)));
  std::vector<ExprId> results;
  for (BufferId partial : member.partials) {
    ExprId lane = k_.load(partial, {k_.constant(0)});
    results.push_back(k_.add({Op::lane, k_.expr(lane).type, {lane}, 0, {}, {}, false}));
  }
  finish(&member, results, block);
}

void emit_row(Stitcher* stitcher, int row, int lanes, Block* block) {
  RowEmitter(stitcher, row, lanes).emit(block);
}

}  // namespace heddle::stitch
