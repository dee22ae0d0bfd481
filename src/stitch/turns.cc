// Maps whose input is contiguous along another digit than the output: squares are transposed in
// registers.
#include "stitch/row_emitter.h"

namespace heddle::stitch {

// Squares over the two digits, the longer one inside: whole squares in loops, then the partial ones
// at the edges.
void RowEmitter::emit_turn(Block* block) {
  const int along = row_.own[0].digits[0], across = row_.own[1].digits[0];
  const std::vector<int64_t>& extents = members_[0].extents;
  const bool along_inside = extents[along] >= extents[across];
  auto inside = [&](int64_t outer, Block* to) {
    each_square(
        along_inside ? along : across,
        [&](int64_t inner, Block* body) {
          emit_square(across, along, along_inside ? inner : outer, along_inside ? outer : inner,
                      body);
        },
        to);
  };
  each_square(along_inside ? across : along, inside, block);
}

// `body` for every run of at most `lanes_` elements of a digit, with the run's length.
void RowEmitter::each_square(int digit, const std::function<void(int64_t, Block*)>& body,
                             Block* block) {
  const int64_t squares = members_[0].extents[digit] / lanes_;
  const int64_t rest = members_[0].extents[digit] % lanes_;
  const Expr first = members_[0].digits[digit];
  if (squares > 0) {
    VarId var = k_.add_var("square");
    members_[0].digits[digit] = first + Expr::digit(s_.add_scope(var, squares)) * lanes_;
    Block inner;
    body(lanes_, &inner);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(squares), std::move(inner)));
  }
  if (rest > 0) {
    members_[0].digits[digit] = first + Expr(squares * lanes_);
    body(rest, block);
  }
  members_[0].digits[digit] = first;
}

// `rows` elements along the load's digit by `columns` of the output's, from the member's digits on.
void RowEmitter::emit_square(int across, int along, int64_t rows, int64_t columns, Block* block) {
  const Member& member = members_[0];
  const Stage& stage = stage_of(member);
  const stage::Turn& form = *row_.turn();
  const stage::Load& load = stage.loads[static_cast<size_t>(form.load)];
  const BufferId from = s_.inputs_[static_cast<size_t>(load.source.input)];
  const Type type = k_.buffer(from).type;
  kernel::Buffer registers;
  registers.name = "turned";
  registers.type = lane_type(type);
  registers.extents = {lanes_};
  registers.space = kernel::Space::reg;
  registers.lanes = lanes_;
  const BufferId turned = k_.add_buffer(registers);
  load_square(load, from, turned, {across, along, rows, columns}, block);
  VarId l = k_.add_var("l");
  const Expr lane = Expr::digit(s_.add_scope(l, columns));
  Block body;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<Expr> digits = member.digits;
    digits[across] = digits[across] + lane;
    digits[along] = digits[along] + Expr(r);
    Stitcher::Context context = s_.context(member.stage, digits);
    for (size_t n = 0; n < stage.nodes.size(); ++n)
      if (stage.nodes[n].kind == Node::Kind::load && stage.nodes[n].load == form.load)
        context.memo.emplace(static_cast<int>(n),
                             from_lane(k_.load(turned, {k_.constant(r)}), type));
    for (size_t v = 0; v < stage.values.size(); ++v) {
      const ExprId x = s_.node(&context, stage.values[v].result);
      s_.store_value(member.stage, static_cast<int>(v), digits, x, &body);
    }
  }
  block->push_back(lanes_loop(l, columns, std::move(body)));
}

namespace {

Type bits_of(Type type) { return tensor::type_bits(type) == 8 ? Type::u8 : Type::u16; }

}  // namespace

Type RowEmitter::lane_type(Type type) { return tensor::type_bits(type) < 32 ? Type::u32 : type; }

ExprId RowEmitter::to_lane(ExprId x, Type type) {
  if (lane_type(type) == type) return x;
  return k_.convert(k_.add({Op::bitcast, bits_of(type), {x}}), Type::u32);
}

ExprId RowEmitter::from_lane(ExprId x, Type type) {
  if (lane_type(type) == type) return x;
  return k_.add({Op::bitcast, type, {k_.convert(x, bits_of(type))}});
}

// All lanes take part in the shuffles, also where the square is partial.
void RowEmitter::load_square(const stage::Load& load, BufferId from, BufferId turned,
                             const Square& square, Block* block) {
  if (is_gpu()) return load_square_through_scratch(load, from, turned, square, block);
  const Type stored = k_.buffer(from).type, type = lane_type(stored);
  VarId l = k_.add_var("l");
  const Expr lane = Expr::digit(s_.add_scope(l, lanes_));
  const ExprId lane_number = k_.ref(l);
  Block body;
  auto named = [&](ExprId x) {
    VarId name = k_.add_var("t", type);
    body.push_back(make_let(name, x));
    return k_.ref(name);
  };
  const ExprId nothing = emit_constant(&k_, type, 0);
  std::vector<ExprId> rows;
  for (int64_t c = 0; c < lanes_; ++c) {
    if (c >= square.columns) {
      rows.push_back(nothing);
      continue;
    }
    std::vector<Expr> digits = members_[0].digits;
    digits[square.across] = digits[square.across] + Expr(c);
    digits[square.along] = digits[square.along] + lane;
    const ExprId at = s_.index_expr(substitute(load.coordinates[0], digits, s_.scope_extents_));
    const ExprId inside = k_.compare(Op::lt, lane_number, k_.constant(square.rows));
    const ExprId x = square.rows == lanes_
                         ? k_.load(from, {at})
                         : k_.load_if(from, {at}, inside, emit_constant(&k_, stored, 0));
    rows.push_back(named(to_lane(x, stored)));
  }
  stitch::turn(&k_, &rows, lane_number, type, &body);
  for (int64_t r = 0; r < square.rows; ++r)
    body.push_back(make_store(turned, {k_.constant(r)}, rows[static_cast<size_t>(r)]));
  block->push_back(lanes_loop(l, lanes_, std::move(body)));
}

// Rounds that exchange blocks of 1, 2, 4, … lanes between vectors.
void turn(kernel::Kernel* kernel, std::vector<ExprId>* square, ExprId lane_number, Type type,
          Block* block) {
  auto named = [&](ExprId x) {
    VarId name = kernel->add_var("t", type);
    block->push_back(make_let(name, x));
    return kernel->ref(name);
  };
  const size_t lanes = square->size();
  for (size_t half = 1; half < lanes; half *= 2) {
    const auto distance = static_cast<int64_t>(half);
    const ExprId low =
        kernel->compare(Op::eq, kernel->binary(Op::and_, lane_number, kernel->constant(distance)),
                        kernel->constant(0));
    auto exchanged = [&](ExprId x) {
      return kernel->add({Op::shuffle_xor, type, {x}, distance, {}, {}, false});
    };
    for (size_t i = 0; i < lanes; ++i) {
      if (i & half) continue;
      ExprId& upper = (*square)[i];
      ExprId& lower = (*square)[i + half];
      const ExprId first = named(kernel->select(low, upper, exchanged(lower)));
      lower = named(kernel->select(low, exchanged(upper), lower));
      upper = first;
    }
  }
}

}  // namespace heddle::stitch
