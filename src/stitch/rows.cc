// Rows of joined stages: serial loops around one vector loop; reductions keep partial results in
// registers, one a lane and unrolled step, and combine them in a fixed tree (numerics: the order
// depends on shape and target only).
#include <algorithm>

#include "stitch/stitcher.h"

namespace heddle::stitch {

class RowEmitter {
 public:
  RowEmitter(Stitcher* s, int number, int lanes)
      : s_(*s),
        k_(s->kernel_),
        row_(std::get<Row>(s->placed_.schedule.nodes[number])),
        number_(number),
        lanes_(lanes) {}

  void emit(Block* block) {
    for (StageId id : row_.joined) {
      Member member;
      member.stage = static_cast<int>(id.index());
      const Stage& stage = graph().stages[member.stage];
      const schedule::Placed& placed = s_.placed_.placement.stages[member.stage];
      std::vector<Expr> loops;
      for (int scope : s_.loop_scope_) loops.push_back(scope >= 0 ? Expr::digit(scope) : Expr(0));
      for (size_t d = 0; d < stage.out.size(); ++d) {
        member.digits.push_back(substitute(placed.need[d].offset, loops, s_.scope_extents_));
        member.extents.push_back(placed.need[d].extent);
      }
      for (const schedule::Digit& digit : stage.red) {
        member.digits.push_back(Expr(0));
        member.extents.push_back(digit.extent);
      }
      members_.push_back(std::move(member));
    }
    const bool has_vector =
        !row_.own.empty() && row_.own.back().kind == schedule::LoopKind::vector;
    if (!has_vector) return emit_scalar(block);
    const Stage& first = graph().stages[members_[0].stage];
    int lane_digit = row_.own.back().digits[0];
    if (first.is_reduction() && lane_digit < static_cast<int>(first.out.size()))
      return emit_columns(block);
    emit_level(0, block);
  }

 private:
  struct Member {
    int stage = 0;
    std::vector<Expr> digits;       // in scope
    std::vector<int64_t> extents;   // at this place
    std::vector<BufferId> partials; // of a reduction, by value
  };

  const schedule::StageGraph& graph() const { return s_.placed_.graph; }
  const Stage& stage_of(const Member& member) const { return graph().stages[member.stage]; }

  // Loop index at which the partial results of a reduction start: its first reduced loop.
  size_t reduced_from(size_t m) const {
    const Stage& stage = stage_of(members_[m]);
    for (size_t i = 0; i < row_.own.size(); ++i)
      if (row_.own[i].digits[m] >= static_cast<int>(stage.out.size())) return i;
    return row_.own.size();
  }

  // --- Values -----------------------------------------------------------------------------------

  std::vector<ExprId> starts(Stitcher::Context* context, const Stage& stage, bool* neutral) {
    std::vector<ExprId> result;
    *neutral = true;
    for (const schedule::Value& value : stage.values) {
      Type type = accumulation_type(value.type);
      if (value.init < 0) {
        result.push_back(emit_constant(&k_, type, 0));
        continue;
      }
      std::optional<ExprId> start;
      if (stage.combine && stage.values.size() == 1) start = neutral_start(&k_, *stage.combine, type);
      if (!start) {
        *neutral = false;
        start = emit_op(&k_, hlo::Opcode::convert, type, nullptr,
                        {s_.node(context, value.init)});
      }
      result.push_back(*start);
    }
    return result;
  }

  std::vector<ExprId> combine(const Stage& stage, const std::vector<ExprId>& a,
                              const std::vector<ExprId>& b) {
    if (!stage.combine) return {k_.binary(Op::add, a[0], b[0])};
    std::vector<ExprId> arguments = a;
    arguments.insert(arguments.end(), b.begin(), b.end());
    return emit_combine(&k_, *stage.combine, arguments);
  }

  // One more element into the accumulators: a product goes in by fma.
  std::vector<ExprId> accumulate(Stitcher::Context* context, const Stage& stage,
                                 const std::vector<ExprId>& accumulators) {
    if (!stage.combine) {
      const Node& product = stage.nodes[stage.values[0].result];
      Type type = accumulation_type(stage.values[0].type);
      bool is_float = type == Type::f32 || type == Type::f64;
      if (product.kind == Node::Kind::op && product.opcode == hlo::Opcode::multiply && is_float) {
        std::vector<ExprId> sides;
        for (int operand : product.operands)
          sides.push_back(emit_op(&k_, hlo::Opcode::convert, type, nullptr,
                                  {s_.node(context, operand)}));
        return {k_.fma(sides[0], sides[1], accumulators[0])};
      }
    }
    std::vector<ExprId> elements;
    for (const schedule::Value& value : stage.values)
      elements.push_back(emit_op(&k_, hlo::Opcode::convert, accumulation_type(value.type), nullptr,
                                 {s_.node(context, value.result)}));
    if (!stage.combine && accumulation_type(stage.values[0].type) == Type::pred)
      return {k_.binary(Op::or_, accumulators[0], elements[0])};
    return combine(stage, accumulators, elements);
  }

  // The results of a reduction are at hand: the initial value joins where the start was neutral.
  void finish(Member* member, std::vector<ExprId> results, Block* block) {
    const Stage& stage = stage_of(*member);
    Stitcher::Context context = s_.context(member->stage, member->digits);
    bool neutral = true;
    starts(&context, stage, &neutral);
    if (neutral && stage.combine) {
      std::vector<ExprId> init;
      bool plain = true;
      for (const schedule::Value& value : stage.values) {
        Type type = accumulation_type(value.type);
        init.push_back(emit_op(&k_, hlo::Opcode::convert, type, nullptr,
                               {s_.node(&context, value.init)}));
        plain &= init.back() == *neutral_start(&k_, *stage.combine, type);
      }
      if (!plain) results = combine(stage, init, results);
    }
    for (size_t v = 0; v < results.size(); ++v) keep(member, static_cast<int>(v), results[v], block);
  }

  // Gives a finished value its home: a named register, or memory.
  void keep(Member* member, int value, ExprId x, Block* block) {
    const Stage& stage = stage_of(*member);
    x = emit_op(&k_, hlo::Opcode::convert, stage.values[value].type, nullptr, {x});
    if (k_.expr(x).op != Op::var && k_.expr(x).op != Op::constant) {
      VarId var = k_.add_var(fmt::format("v{}", member->stage), k_.expr(x).type);
      block->push_back(make_let(var, x));
      x = k_.ref(var);
    }
    s_.store_value(member->stage, value, member->digits, x, block);
    Home& home = s_.homes_[member->stage][value];
    if (home.kind != Home::Kind::buffer) home = {Home::Kind::uniform, x, {}, false, false};
  }

  // --- A row without loops: one element of each ---------------------------------------------------

  void emit_scalar(Block* block) {
    HEDDLE_CHECK(row_.own.empty(), "serial loops without lanes");
    for (Member& member : members_) {
      const Stage& stage = stage_of(member);
      Stitcher::Context context = s_.context(member.stage, member.digits);
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

  // --- Lanes along a reduced digit, or maps ------------------------------------------------------

  void emit_level(size_t level, Block* block) {
    for (size_t m = 0; m < members_.size(); ++m)
      if (stage_of(members_[m]).is_reduction() && reduced_from(m) == level) init_partials(m, block);
    if (level + 1 == row_.own.size()) {
      emit_lanes(block);
    } else {
      const schedule::Own& own = row_.own[level];
      int64_t trips = members_[0].extents[own.digits[0]];
      VarId var = k_.add_var("i");
      int scope = s_.add_scope(var, trips);
      std::vector<Member> saved = members_;
      for (size_t m = 0; m < members_.size(); ++m) {
        Expr& digit = members_[m].digits[own.digits[m]];
        digit = digit + Expr::digit(scope);
      }
      Block body;
      emit_level(level + 1, &body);
      for (size_t m = 0; m < members_.size(); ++m) members_[m].digits = saved[m].digits;
      block->push_back(
          make_loop(LoopKind::serial, var, k_.constant(trips), std::move(body)));
    }
    for (size_t m = 0; m < members_.size(); ++m)
      if (stage_of(members_[m]).is_reduction() && reduced_from(m) == level)
        combine_partials(m, block);
  }

  int unroll() const {
    return static_cast<int>(std::max<int64_t>(1, row_.own.back().by / lanes_));
  }

  void init_partials(size_t m, Block* block) {
    Member& member = members_[m];
    const Stage& stage = stage_of(member);
    Stitcher::Context context = s_.context(member.stage, member.digits);
    bool neutral = true;
    std::vector<ExprId> first = starts(&context, stage, &neutral);
    if (member.partials.empty()) {
      for (size_t v = 0; v < stage.values.size(); ++v)
        member.partials.push_back(partial_buffer(stage, member.stage, static_cast<int>(v), unroll()));
    }
    Block body;
    VarId u = k_.add_var("u"), l = k_.add_var("l");
    for (size_t v = 0; v < stage.values.size(); ++v)
      body.push_back(make_store(member.partials[v], {k_.ref(u)}, first[v]));
    block->push_back(unrolled(u, unroll(), lanes_loop(l, lanes_, std::move(body))));
  }

  BufferId partial_buffer(const Stage& stage, int number, int value, int count) {
    kernel::Buffer buffer;
    buffer.name = fmt::format("acc{}{}", number, value ? fmt::format("_{}", value) : "");
    buffer.type = accumulation_type(stage.values[value].type);
    buffer.extents = {count};
    buffer.space = kernel::Space::reg;
    buffer.lanes = lanes_;
    return k_.add_buffer(buffer);
  }

  Stmt lanes_loop(VarId var, int64_t extent, Block body) {
    return make_loop(LoopKind::vector, var, k_.constant(extent), std::move(body), lanes_);
  }
  Stmt unrolled(VarId var, int64_t extent, Stmt inner) {
    Block body;
    body.push_back(std::move(inner));
    return make_loop(LoopKind::unrolled, var, k_.constant(extent), std::move(body));
  }

  void emit_lanes(Block* block) {
    const schedule::Own& own = row_.own.back();
    int64_t extent = members_[0].extents[own.digits[0]];
    bool accumulates = std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
      return stage_of(member).is_reduction();
    });
    if (!accumulates) return emit_whole_lanes(extent, block);
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

  // Maps only: one loop over everything; a driven digit's last strip may be shorter.
  void emit_whole_lanes(int64_t extent, Block* block) {
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
    block->push_back(make_loop(LoopKind::vector, l, trips, std::move(body), lanes_));
  }

  // All members at one iteration of the lanes; `slot` is the unrolled accumulator.
  void emit_point(const Expr& lane, ExprId slot, Block* block) {
    const schedule::Own& own = row_.own.back();
    std::vector<std::pair<int, std::vector<Home>>> saved;
    for (size_t m = 0; m < members_.size(); ++m) {
      Member& member = members_[m];
      const Stage& stage = stage_of(member);
      std::vector<Expr> digits = member.digits;
      digits[own.digits[m]] = digits[own.digits[m]] + lane;
      Stitcher::Context context = s_.context(member.stage, digits);
      if (!stage.is_reduction()) {
        saved.emplace_back(member.stage, s_.homes_[member.stage]);
        for (size_t v = 0; v < stage.values.size(); ++v)
          map_value(&context, member, static_cast<int>(v), digits, block);
        continue;
      }
      std::vector<ExprId> accumulators;
      for (BufferId partial : member.partials) accumulators.push_back(k_.load(partial, {slot}));
      std::vector<ExprId> next = accumulate(&context, stage, accumulators);
      if (next.size() > 1) next = name_all(next, block);
      for (size_t v = 0; v < next.size(); ++v)
        block->push_back(make_store(member.partials[v], {slot}, next[v]));
    }
    for (auto& [stage, homes] : saved) s_.homes_[stage] = homes;
  }

  std::vector<ExprId> name_all(const std::vector<ExprId>& values, Block* block) {
    std::vector<ExprId> named;
    for (ExprId x : values) {
      VarId var = k_.add_var("t", k_.expr(x).type);
      block->push_back(make_let(var, x));
      named.push_back(k_.ref(var));
    }
    return named;
  }

  void map_value(Stitcher::Context* context, const Member& member, int value,
                 const std::vector<Expr>& digits, Block* block) {
    const Stage& stage = stage_of(member);
    ExprId x = s_.node(context, stage.values[value].result);
    if (members_.size() > 1 || s_.homes_[member.stage][value].kind == Home::Kind::buffer) {
      VarId var = k_.add_var(fmt::format("v{}", member.stage), k_.expr(x).type);
      block->push_back(make_let(var, x));
      x = k_.ref(var);
    }
    s_.store_value(member.stage, value, digits, x, block);
    // The members behind it see it as it is now.
    s_.homes_[member.stage][value] = {Home::Kind::current, x, {}, false, false};
  }

  // Unrolled steps, then lanes, by halves.
  void combine_partials(size_t m, Block* block) {
    Member& member = members_[m];
    const Stage& stage = stage_of(member);
    VarId l = k_.add_var("l");
    Block body;
    auto step = [&](int64_t slot, const std::vector<ExprId>& others) {
      std::vector<ExprId> mine;
      for (BufferId partial : member.partials)
        mine.push_back(k_.load(partial, {k_.constant(slot)}));
      std::vector<ExprId> next = combine(stage, mine, others);
      if (next.size() > 1) next = name_all(next, &body);
      for (size_t v = 0; v < next.size(); ++v)
        body.push_back(make_store(member.partials[v], {k_.constant(slot)}, next[v]));
    };
    for (int half = unroll() / 2; half > 0; half /= 2) {
      for (int slot = 0; slot < half; ++slot) {
        std::vector<ExprId> others;
        for (BufferId partial : member.partials)
          others.push_back(k_.load(partial, {k_.constant(slot + half)}));
        step(slot, others);
      }
    }
    for (int distance = lanes_ / 2; distance > 0; distance /= 2) {
      std::vector<ExprId> others;
      for (BufferId partial : member.partials) {
        ExprId own = k_.load(partial, {k_.constant(0)});
        others.push_back(
            k_.add({Op::shuffle_xor, k_.expr(own).type, {own}, distance, {}, {}, false}));
      }
      if (others.size() > 1) others = name_all(others, &body);
      step(0, others);
    }
    if (!body.empty()) block->push_back(lanes_loop(l, lanes_, std::move(body)));
    std::vector<ExprId> results;
    for (BufferId partial : member.partials) {
      ExprId lane = k_.load(partial, {k_.constant(0)});
      results.push_back(k_.add({Op::lane, k_.expr(lane).type, {lane}, 0, {}, {}, false}));
    }
    finish(&member, results, block);
  }

  // --- A reduction whose lanes run along an output digit ------------------------------------------

  // serial out digits { blocks of vectors { init; serial red digits { lanes }; write } }
  void emit_columns(Block* block) {
    HEDDLE_CHECK(members_.size() == 1, "column reductions are not joined");
    Member& member = members_[0];
    const Stage& stage = stage_of(member);
    std::vector<const schedule::Own*> out, red;
    for (size_t i = 0; i + 1 < row_.own.size(); ++i)
      (row_.own[i].digits[0] < static_cast<int>(stage.out.size()) ? out : red)
          .push_back(&row_.own[i]);
    emit_columns_outer(out, red, 0, block);
  }

  void emit_columns_outer(const std::vector<const schedule::Own*>& out,
                          const std::vector<const schedule::Own*>& red, size_t level,
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
      block->push_back(make_loop(LoopKind::serial, var, k_.constant(member.extents[digit]),
                                 std::move(body)));
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
  void emit_column_block(const std::vector<const schedule::Own*>& red, const Expr& base,
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
    for (const schedule::Own* own : red) {
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
      outer.push_back(make_loop(LoopKind::serial, loops[i].first, k_.constant(loops[i].second),
                                std::move(body)));
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

  Stitcher& s_;
  kernel::Kernel& k_;
  const Row& row_;
  int number_;
  int lanes_;
  std::vector<Member> members_;
};

void emit_row(Stitcher* stitcher, int row, int lanes, Block* block) {
  RowEmitter(stitcher, row, lanes).emit(block);
}

}  // namespace heddle::stitch
