// Top-k: sorted lists of keys and places (stage/top_k.h). A key is an integer in the total order of
// the values, reversed where the smallest are wanted; an element is inserted before the first
// smaller key, so that equal elements keep their order. Rows in lanes: top_k_lanes.cc.
#include "stage/top_k.h"
#include "hlo/top_k_part.h"
#include "stitch/top_k_list.h"

namespace heddle::stitch {

ExprId RowEmitter::key_constant(const TopK& top, uint64_t bits) {
  return emit_constant(&k_, top.key, bits);
}

// Floats: the bits, with those below the sign inverted where it is set.
ExprId RowEmitter::key_of(const TopK& top, ExprId x) {
  const Type wide = top.key == Type::s64 ? Type::f64 : Type::f32;
  if (tensor::is_float(top.type)) {
    x = emit_op(&k_, hlo::Opcode::convert, wide, nullptr, {x});
    x = turned_bits(top, k_.add({Op::bitcast, top.key, {x}, 0, {}, {}, false}));
  } else {
    x = k_.convert(x, top.key);
  }
  return top.largest ? x : k_.binary(Op::xor_, x, key_constant(top, ~uint64_t{0}));
}

ExprId RowEmitter::value_of(const TopK& top, ExprId key) {
  if (!top.largest) key = k_.binary(Op::xor_, key, key_constant(top, ~uint64_t{0}));
  if (!tensor::is_float(top.type)) return k_.convert(key, top.type);
  const Type wide = top.key == Type::s64 ? Type::f64 : Type::f32;
  const ExprId x = k_.add({Op::bitcast, wide, {turned_bits(top, key)}, 0, {}, {}, false});
  return emit_op(&k_, hlo::Opcode::convert, top.type, nullptr, {x});
}

ExprId RowEmitter::turned_bits(const TopK& top, ExprId bits) {
  const auto sign = static_cast<uint64_t>(tensor::type_bits(top.key)) - 1;
  const ExprId signs = k_.binary(Op::shr_arithmetic, bits, key_constant(top, sign));
  const ExprId mask = k_.binary(Op::and_, signs, key_constant(top, top.least() - 1));
  return k_.binary(Op::xor_, bits, mask);
}

// Key and place of element `at` of the reduced digits.
std::pair<ExprId, ExprId> RowEmitter::top_element(const TopK& top, const Expr& at) {
  Member& member = members_[0];
  const std::vector<Expr> saved = member.digits;
  // A row that a reshape made has several digits.
  const std::vector<stage::Digit>& red = stage_of(member).red;
  Expr outer = at;
  for (size_t r = red.size(); r-- > 1;) {
    member.digits[top.reduced + r] = mod(outer, red[r].extent, s_.scope_extents_);
    outer = floor_div(outer, red[r].extent, s_.scope_extents_);
  }
  if (top.reduced >= 0) member.digits[top.reduced] = outer;
  Stitcher::Context context = s_.context(member.stage, member.digits);
  const ExprId x = s_.node(&context, stage_of(member).values[0].result);
  member.digits = saved;
  return {key_of(top, x), k_.convert(s_.index_expr(at), Type::s32)};
}

void RowEmitter::emit_top_k(Block* block) {
  const Stage& stage = stage_of(members_[0]);
  const hlo::TopKPart part = *hlo::top_k_part(*stage.instr);
  TopK top;
  top.k = part.k;
  top.largest = part.largest;
  top.type = stage.values[0].type;
  top.key = tensor::type_bytes(top.type) == 8 ? Type::s64 : Type::s32;
  top.list = stage::list_digit(stage);
  top.last = 1;
  if (top.list >= 0) {
    const Expr& from = members_[0].digits[top.list];
    HEDDLE_CHECK(from.is_constant(), "{}: a part of the list that moves", stage.name);
    top.first = from.constant();
    top.last = top.first + members_[0].extents[top.list];
  }
  if (!stage.red.empty()) top.reduced = static_cast<int>(stage.out.size());
  top.elems = stage.red_elems();
  emit_top_rows(&top, 0, block);
}

// Loops over the rows of the need, except those in lanes.
void RowEmitter::emit_top_rows(TopK* top, int digit, Block* block) {
  Member& member = members_[0];
  const int lanes = row_.own.empty() ? -1 : row_.own.back().digits[0];
  if (digit == static_cast<int>(stage_of(member).out.size()))
    return lanes < 0 ? emit_top_row(*top, block) : emit_top_lanes(top, lanes, block);
  if (digit == lanes || digit == top->list || member.extents[digit] == 1)
    return emit_top_rows(top, digit + 1, block);
  const VarId var = k_.add_var("i");
  const Expr saved = member.digits[digit];
  member.digits[digit] = saved + Expr::digit(s_.add_scope(var, member.extents[digit]));
  if (lanes < 0 && !top->keys.valid()) add_list(top);
  Block body;
  emit_top_rows(top, digit + 1, &body);
  member.digits[digit] = saved;
  block->push_back(
      make_loop(LoopKind::serial, var, k_.constant(member.extents[digit]), std::move(body)));
}

// Stores element `at` of the current row's list.
void RowEmitter::store_top(const TopK& top, const Expr& at, ExprId key, ExprId place,
                           Block* block) {
  const Member& member = members_[0];
  std::vector<Expr> digits = member.digits;
  if (top.list >= 0) digits[top.list] = at;
  for (int v = 0; v < 2; ++v) {
    const bool kept = s_.homes_[member.stage][v].kind == Home::Kind::buffer ||
                      stage_of(member).values[v].output >= 0;
    if (kept) s_.store_value(member.stage, v, digits, v == 0 ? value_of(top, key) : place, block);
  }
}

// In scratch; slot 0 is a sentinel that no key precedes.
void RowEmitter::add_list(TopK* top) {
  const int stage = members_[0].stage;
  top->keys = k_.add_scratch(fmt::format("keys{}", stage), top->key, top->k + 1);
  top->places = k_.add_scratch(fmt::format("places{}", stage), Type::s32, top->k + 1);
}

// One row: blocks without an element greater than the last of the list are skipped.
void RowEmitter::emit_top_row(TopK top, Block* block) {
  if (!top.keys.valid()) add_list(&top);
  const VarId l = k_.add_var("l");
  Block start;
  start.push_back(make_store(top.keys, {k_.ref(l)}, key_constant(top, top.least())));
  start.push_back(make_store(top.places, {k_.ref(l)}, key_zero()));
  block->push_back(lanes_loop(l, top.k + 1, std::move(start)));
  block->push_back(make_store(top.keys, {k_.constant(0)}, key_constant(top, top.least() - 1)));
  auto serial = [&](int64_t count, const Expr& from, const std::function<void(Expr, Block*)>& emit,
                    Block* to) {
    if (count == 0) return;
    const VarId var = k_.add_var("r");
    const Expr at = from + Expr::digit(s_.add_scope(var, count));
    Block body;
    emit(at, &body);
    to->push_back(make_loop(LoopKind::serial, var, k_.constant(count), std::move(body)));
  };
  serial(
      top.k, Expr(0), [&](const Expr& at, Block* to) { insert_in_row(top, at, true, to); }, block);
  auto insert = [&](const Expr& at, Block* to) { insert_in_row(top, at, false, to); };
  const int64_t step = 4 * int64_t{lanes_}, blocks = (top.elems - top.k) / step;
  if (blocks > 0) {
    const VarId var = k_.add_var("b");
    const Expr base = Expr(top.k) + Expr::digit(s_.add_scope(var, blocks)) * step;
    Block body, found;
    const ExprId greatest = greatest_key(top, base, &body);
    serial(step, base, insert, &found);
    const ExprId last = k_.load(top.keys, {k_.constant(top.k)});
    body.push_back(make_if(k_.compare(Op::gt, greatest, last), std::move(found)));
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(blocks), std::move(body)));
  }
  serial(top.elems - top.k - blocks * step, Expr(top.k + blocks * step), insert, block);
  if (top.last - top.first == 1) {  // one value, in a register
    const ExprId slot = k_.constant(top.first + 1);
    const ExprId key = k_.load(top.keys, {slot});
    keep(&members_[0], 0, value_of(top, key), block);
    keep(&members_[0], 1, k_.load(top.places, {slot}), block);
    return;
  }
  const VarId j = k_.add_var("l");
  const Expr slot = Expr(top.first) + Expr::digit(s_.add_scope(j, top.last - top.first));
  const ExprId index = s_.index_expr(slot + Expr(1));
  Block out;
  store_top(top, slot, k_.load(top.keys, {index}), k_.load(top.places, {index}), &out);
  if (!out.empty()) block->push_back(lanes_loop(j, top.last - top.first, std::move(out)));
}

// The greatest key of four vectors from `base` on.
ExprId RowEmitter::greatest_key(const TopK& top, const Expr& base, Block* block) {
  kernel::Buffer buffer;
  buffer.name = fmt::format("most{}", members_[0].stage);
  buffer.type = top.key;
  buffer.extents = {1};
  buffer.space = kernel::Space::reg;
  buffer.lanes = lanes_;
  const BufferId most = k_.add_buffer(buffer);
  const ExprId zero = k_.constant(0);
  const VarId l = k_.add_var("l");
  const Expr lane = Expr::digit(s_.add_scope(l, lanes_));
  Block body;
  auto keep_greater = [&](ExprId x) {
    const VarId var = k_.add_var("x", top.key);
    body.push_back(make_let(var, x));
    body.push_back(
        make_store(most, {zero}, k_.binary(Op::max, k_.load(most, {zero}), k_.ref(var))));
  };
  body.push_back(make_store(most, {zero}, top_element(top, base + lane).first));
  for (int64_t v = 1; v < 4; ++v)
    keep_greater(top_element(top, base + Expr(v * lanes_) + lane).first);
  for (int distance = lanes_ / 2; distance > 0; distance /= 2)
    keep_greater(
        k_.add({Op::shuffle_xor, top.key, {k_.load(most, {zero})}, distance, {}, {}, false}));
  block->push_back(lanes_loop(l, lanes_, std::move(body)));
  return k_.add({Op::lane, top.key, {k_.load(most, {zero})}, 0, {}, {}, false});
}

// Slots in lanes, the last ones first: each compares with its own key and with the one before it.
void RowEmitter::insert_in_row(const TopK& top, const Expr& at, bool filling, Block* block) {
  const auto [element, place] = top_element(top, at);
  const VarId x = k_.add_var("x", top.key);
  block->push_back(make_let(x, element));
  Block inside;
  for (int64_t from = (top.k - 1) / lanes_ * lanes_; from >= 0; from -= lanes_) {
    const int64_t here = std::min<int64_t>(lanes_, top.k - from);
    const VarId l = k_.add_var("l");
    Block body;
    auto named = [&](const char* name, ExprId value) {
      const VarId var = k_.add_var(name, k_.expr(value).type);
      body.push_back(make_let(var, value));
      return k_.ref(var);
    };
    const ExprId front = k_.binary(Op::add, k_.ref(l), k_.constant(from));
    const ExprId own = k_.binary(Op::add, k_.ref(l), k_.constant(from + 1));
    const ExprId key = named("key", k_.load(top.keys, {own}));
    const ExprId key_before = named("before", k_.load(top.keys, {front}));
    const ExprId was = named("place", k_.load(top.places, {own}));
    const ExprId was_before = named("place", k_.load(top.places, {front}));
    ExprId goes = k_.compare(Op::gt, k_.ref(x), key);
    ExprId goes_before = k_.compare(Op::gt, k_.ref(x), key_before);
    if (filling) {
      const ExprId count = s_.index_expr(at);
      goes = k_.binary(Op::or_, goes, k_.compare(Op::ge, front, count));
      goes_before = k_.binary(Op::or_, goes_before, k_.compare(Op::gt, front, count));
    }
    const ExprId second = named("goes", goes_before), first = named("goes", goes);
    body.push_back(make_store(top.keys, {own},
                              k_.select(first, k_.select(second, key_before, k_.ref(x)), key)));
    body.push_back(
        make_store(top.places, {own}, k_.select(first, k_.select(second, was_before, place), was)));
    inside.push_back(lanes_loop(l, here, std::move(body)));
  }
  if (filling) {
    for (Stmt& stmt : inside) block->push_back(std::move(stmt));
    return;
  }
  const ExprId last = k_.load(top.keys, {k_.constant(top.k)});
  block->push_back(make_if(k_.compare(Op::gt, k_.ref(x), last), std::move(inside)));
}

}  // namespace heddle::stitch
