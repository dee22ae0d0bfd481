// Top-k of several rows at once, one row per lane, lists in registers. Blocks of as many elements
// as the list has slots are sorted and merged into it by comparison networks, which look at keys
// alone: this is right unless keys in or next to a lane's list are equal. Then the elements are
// inserted again one by one, which keeps equal elements in order.
#include <bit>

#include "schedule/lane_digit.h"
#include "stitch/top_k_list.h"

namespace heddle::stitch {

namespace {

// The comparisons of Batcher's odd-even merge sort of n elements, a power of two, in order.
std::vector<std::pair<int, int>> sorting_network(int n) {
  std::vector<std::pair<int, int>> result;
  for (int sorted = 1; sorted < n; sorted *= 2)
    for (int step = sorted; step > 0; step /= 2)
      for (int from = step % sorted; from + step < n; from += 2 * step)
        for (int i = from; i < std::min(from + step, n - step); ++i)
          if (i / (2 * sorted) == (i + step) / (2 * sorted)) result.emplace_back(i, i + step);
  return result;
}

// The comparisons that sort a bitonic sequence: one that falls and then rises.
std::vector<std::pair<int, int>> bitonic_network(int n) {
  std::vector<std::pair<int, int>> result;
  for (int half = n / 2; half > 0; half /= 2)
    for (int i = 0; i < n; ++i)
      if ((i & half) == 0) result.emplace_back(i, i + half);
  return result;
}

}  // namespace

// Registers of one element per lane.
BufferId RowEmitter::lane_registers(const std::string& name, Type type, int64_t count) {
  kernel::Buffer buffer;
  buffer.name = fmt::format("{}{}", name, members_[0].stage);
  buffer.type = type;
  buffer.extents = {count};
  buffer.space = kernel::Space::reg;
  buffer.lanes = lanes_;
  return k_.add_buffer(buffer);
}

// Rows of digit `digit`, as many as there are lanes at a time.
void RowEmitter::emit_top_lanes(TopK* top, int digit, Block* block) {
  Member& member = members_[0];
  const Expr saved = member.digits[digit];
  const int64_t extent = member.extents[digit], blocks = extent / lanes_, rest = extent % lanes_;
  const int64_t slots = top_slots(*top);
  top->keys = lane_registers("keys", top->key, slots);
  top->places = lane_registers("places", Type::s32, slots);
  const Stage& stage = stage_of(member);
  const auto last = static_cast<int>(stage.out.size() + stage.red.size()) - 1;
  if (!is_gpu() && top->reduced >= 0 &&
      schedule::contiguity(stage, last) > schedule::contiguity(stage, digit))
    top->turned =
        k_.add_scratch(fmt::format("turned{}", member.stage), top->key, top->elems * lanes_);
  if (blocks > 0) {
    const VarId var = k_.add_var("b");
    const Expr first = saved + Expr::digit(s_.add_scope(var, blocks)) * lanes_;
    Block body;
    emit_top_block(*top, digit, first, lanes_, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(blocks), std::move(body)));
  }
  if (rest > 0) emit_top_block(*top, digit, saved + Expr(blocks * lanes_), rest, block);
  member.digits[digit] = saved;
}

// Slots of the list: k, or the next power of two where networks are used.
int64_t RowEmitter::top_slots(const TopK& top) const {
  const auto slots = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(top.k)));
  return is_gpu() || top.k == 1 || top.elems < 2 * slots ? top.k : slots;
}

void RowEmitter::emit_top_block(const TopK& top, int digit, const Expr& first, int64_t rows,
                                Block* block) {
  Member& member = members_[0];
  member.digits[digit] = first;
  if (top.turned.valid()) turn_keys(top, digit, rows, block);
  const LaneRows at{digit, first, rows};
  const bool networks = !is_gpu() && top.k > 1 &&
                        top.elems >= 2 * int64_t{std::bit_ceil(static_cast<uint32_t>(top.k))};
  if (!networks) {
    insert_all(top, at, block);
  } else {
    const ExprId doubtful = merge_all(top, at, block);
    Block again;
    insert_all(top, at, &again);
    block->push_back(make_if(doubtful, std::move(again)));
  }
  member.digits[digit] = first;
  store_lists(top, at, block);
}

// A loop over the rows in lanes.
void RowEmitter::in_lanes(const LaneRows& at, const std::function<void(Block*)>& emit, Block* to) {
  const VarId l = k_.add_var("l");
  members_[0].digits[at.digit] = at.first + Expr::digit(s_.add_scope(l, at.rows));
  lane_ = k_.ref(l);
  Block body;
  emit(&body);
  to->push_back(lanes_loop(l, at.rows, std::move(body)));
}

// Transposes the keys of all rows, loaded along the rows, so that the keys of one element are
// contiguous.
void RowEmitter::turn_keys(const TopK& top, int digit, int64_t rows, Block* block) {
  Member& member = members_[0];
  const Expr first = member.digits[digit];
  const int64_t squares = top.elems / lanes_, rest = top.elems % lanes_;
  if (squares > 0) {
    const VarId var = k_.add_var("square"), l = k_.add_var("l");
    const Expr base = Expr::digit(s_.add_scope(var, squares)) * lanes_;
    const Expr lane = Expr::digit(s_.add_scope(l, lanes_));
    Block body;
    std::vector<ExprId> square;
    for (int64_t c = 0; c < lanes_; ++c) {
      member.digits[digit] = first + Expr(c);
      square.push_back(c < rows ? named("x", top_element(top, base + lane).first, &body)
                                : key_constant(top, 0));
    }
    stitch::turn(&k_, &square, k_.ref(l), top.key, &body);
    for (int64_t e = 0; e < lanes_; ++e)
      body.push_back(make_store(top.turned, {s_.index_expr((base + Expr(e)) * lanes_ + lane)},
                                square[static_cast<size_t>(e)]));
    Block inner;
    inner.push_back(lanes_loop(l, lanes_, std::move(body)));
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(squares), std::move(inner)));
  }
  member.digits[digit] = first;
  if (rest == 0) return;
  const VarId var = k_.add_var("r");
  const Expr at = Expr(top.elems - rest) + Expr::digit(s_.add_scope(var, rest));
  Block body;
  in_lanes(
      {digit, first, rows},
      [&](Block* to) {
        const ExprId place = k_.binary(Op::add, s_.index_expr(at * lanes_), lane_);
        to->push_back(make_store(top.turned, {place}, top_element(top, at).first));
      },
      &body);
  member.digits[digit] = first;
  block->push_back(make_loop(LoopKind::serial, var, k_.constant(rest), std::move(body)));
}

// Key and place of the element `at` of the rows in lanes.
std::pair<ExprId, ExprId> RowEmitter::lane_element(const TopK& top, const Expr& at) {
  if (!top.turned.valid()) return top_element(top, at);
  const ExprId place = k_.binary(Op::add, s_.index_expr(at * lanes_), lane_);
  return {k_.load(top.turned, {place}), k_.convert(s_.index_expr(at), Type::s32)};
}

ExprId RowEmitter::named(const char* name, ExprId x, Block* block) {
  const VarId var = k_.add_var(name, k_.expr(x).type);
  block->push_back(make_let(var, x));
  return k_.ref(var);
}

void RowEmitter::exchange(std::vector<ListElement>* list,
                          const std::vector<std::pair<int, int>>& network, Block* block) {
  for (const auto& [i, j] : network) {
    ListElement &a = (*list)[static_cast<size_t>(i)], &b = (*list)[static_cast<size_t>(j)];
    const ExprId less = named("less", k_.compare(Op::lt, a.key, b.key), block);
    const ListElement most{named("key", k_.binary(Op::max, a.key, b.key), block),
                           named("place", k_.select(less, b.place, a.place), block)};
    b = {named("key", k_.binary(Op::min, a.key, b.key), block),
         named("place", k_.select(less, a.place, b.place), block)};
    a = most;
  }
}

// `count` elements of the row from `from` on, sorted; further slots hold the least key.
std::vector<RowEmitter::ListElement> RowEmitter::sorted_list(const TopK& top, const Expr& from,
                                                             int64_t count, Block* block) {
  const auto slots = static_cast<int>(top_slots(top));
  std::vector<ListElement> list;
  for (int i = 0; i < slots; ++i) {
    if (i >= count) {
      list.push_back({key_constant(top, top.least()), key_zero()});
      continue;
    }
    const auto [key, place] = lane_element(top, from + Expr(i));
    list.push_back({named("x", key, block), place});
  }
  exchange(&list, sorting_network(slots), block);
  return list;
}

void RowEmitter::keep_list(const TopK& top, const std::vector<ListElement>& list, Block* block) {
  for (size_t i = 0; i < list.size(); ++i) {
    const ExprId at = k_.constant(static_cast<int64_t>(i));
    block->push_back(make_store(top.keys, {at}, list[i].key));
    block->push_back(make_store(top.places, {at}, list[i].place));
  }
}

// Merges `count` more elements into the list; `left` keeps the largest key that is left out.
void RowEmitter::merge_list(const TopK& top, const Expr& from, int64_t count, BufferId left,
                            Block* block) {
  const auto slots = static_cast<int>(top_slots(top));
  const ExprId zero = k_.constant(0);
  const std::vector<ListElement> others = sorted_list(top, from, count, block);
  std::vector<ListElement> list;
  ExprId out = k_.load(left, {zero});
  for (int64_t i = 0; i < slots; ++i) {
    const ListElement& other = others[static_cast<size_t>(slots - 1 - i)];
    const ExprId key = named("key", k_.load(top.keys, {k_.constant(i)}), block);
    const ExprId place = named("place", k_.load(top.places, {k_.constant(i)}), block);
    const ExprId less = named("less", k_.compare(Op::lt, key, other.key), block);
    out = k_.binary(Op::max, out, k_.binary(Op::min, key, other.key));
    list.push_back({named("key", k_.binary(Op::max, key, other.key), block),
                    named("place", k_.select(less, other.place, place), block)});
  }
  block->push_back(make_store(left, {zero}, out));
  exchange(&list, bitonic_network(slots), block);
  keep_list(top, list, block);
}

// Builds the list by networks. True, the same in all lanes, where equal elements may be in the
// wrong order: two of the list, or one of it and one that was left out.
ExprId RowEmitter::merge_all(const TopK& top, const LaneRows& at, Block* block) {
  const int64_t slots = top_slots(top);
  const BufferId left = lane_registers("left", top.key, 1),
                 equal = lane_registers("equal", Type::s32, 1);
  const ExprId zero = k_.constant(0);
  start_lists(top, block);
  Block start;
  start.push_back(make_store(left, {zero}, key_constant(top, top.least())));
  block->push_back(lanes_loop(k_.add_var("l"), lanes_, std::move(start)));
  in_lanes(at, [&](Block* to) { keep_list(top, sorted_list(top, Expr(0), slots, to), to); }, block);
  const int64_t blocks = top.elems / slots - 1, rest = top.elems % slots;
  const VarId var = k_.add_var("r");
  const Expr from = Expr(slots) + Expr::digit(s_.add_scope(var, blocks)) * slots;
  Block body;
  in_lanes(at, [&](Block* to) { merge_list(top, from, slots, left, to); }, &body);
  block->push_back(make_loop(LoopKind::serial, var, k_.constant(blocks), std::move(body)));
  if (rest > 0)
    in_lanes(
        at, [&](Block* to) { merge_list(top, Expr(top.elems - rest), rest, left, to); }, block);
  find_equals(top, at, left, equal, block);
  return k_.compare(Op::ne,
                    k_.add({Op::lane, Type::s32, {k_.load(equal, {zero})}, 0, {}, {}, false}),
                    key_zero());
}

// Sets `equal` in every lane: whether the list of some lane has two equal keys, or ends in `left`.
void RowEmitter::find_equals(const TopK& top, const LaneRows& at, BufferId left, BufferId equal,
                             Block* block) {
  const ExprId zero = k_.constant(0);
  const VarId l = k_.add_var("l");
  Block test;
  std::vector<ExprId> keys;
  for (int64_t i = 0; i < top_slots(top); ++i)
    keys.push_back(named("key", k_.load(top.keys, {k_.constant(i)}), &test));
  ExprId same = k_.compare(Op::eq, keys.back(), k_.load(left, {zero}));
  for (size_t i = 0; i + 1 < keys.size(); ++i)
    same = k_.binary(Op::or_, same, k_.compare(Op::eq, keys[i], keys[i + 1]));
  same = k_.binary(Op::and_, same, k_.compare(Op::lt, k_.ref(l), k_.constant(at.rows)));
  test.push_back(make_store(equal, {zero}, k_.convert(same, Type::s32)));
  for (int distance = lanes_ / 2; distance > 0; distance /= 2) {
    const ExprId own = k_.load(equal, {zero});
    test.push_back(make_store(
        equal, {zero},
        k_.binary(Op::or_, own,
                  k_.add({Op::shuffle_xor, Type::s32, {own}, distance, {}, {}, false}))));
  }
  block->push_back(lanes_loop(l, lanes_, std::move(test)));
}

// Empty lists, in all lanes: vectors are transposed and compared as a whole.
void RowEmitter::start_lists(const TopK& top, Block* block) {
  Block body;
  const int64_t slots = k_.buffer(top.keys).extents[0];
  for (int64_t j = 0; j < slots; ++j) {
    body.push_back(make_store(top.keys, {k_.constant(j)}, key_constant(top, top.least())));
    body.push_back(make_store(top.places, {k_.constant(j)}, key_zero()));
  }
  block->push_back(lanes_loop(k_.add_var("l"), lanes_, std::move(body)));
}

// Inserts the elements one by one.
void RowEmitter::insert_all(const TopK& top, const LaneRows& at, Block* block) {
  start_lists(top, block);
  // The first k elements take free slots, whatever their keys.
  for (const bool filling : {true, false}) {
    const int64_t from = filling ? 0 : top.k, to = filling ? top.k : top.elems;
    if (from >= to) continue;
    const VarId var = k_.add_var("r");
    const Expr element = Expr(from) + Expr::digit(s_.add_scope(var, to - from));
    Block body;
    in_lanes(at, [&](Block* inner) { insert_in_lanes(top, element, filling, inner); }, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(to - from), std::move(body)));
  }
}

ExprId RowEmitter::key_zero() { return emit_constant(&k_, Type::s32, 0); }

void RowEmitter::insert_in_lanes(const TopK& top, const Expr& at, bool filling, Block* block) {
  const auto [element, place] = lane_element(top, at);
  const ExprId x = named("x", element, block);
  std::vector<ExprId> keys, places, before;
  for (int64_t j = 0; j < top.k; ++j) {
    keys.push_back(named("key", k_.load(top.keys, {k_.constant(j)}), block));
    places.push_back(named("place", k_.load(top.places, {k_.constant(j)}), block));
    ExprId goes = k_.compare(Op::gt, x, keys.back());
    if (filling)
      goes = k_.binary(Op::or_, goes, k_.compare(Op::le, s_.index_expr(at), k_.constant(j)));
    before.push_back(named("goes", goes, block));
  }
  for (int64_t j = 0; j < top.k; ++j) {
    const auto i = static_cast<size_t>(j);
    ExprId key = x, from = place;
    if (j > 0) {
      key = k_.select(before[i - 1], keys[i - 1], x);
      from = k_.select(before[i - 1], places[i - 1], place);
    }
    block->push_back(make_store(top.keys, {k_.constant(j)}, k_.select(before[i], key, keys[i])));
    block->push_back(
        make_store(top.places, {k_.constant(j)}, k_.select(before[i], from, places[i])));
  }
}

// Lists of several elements are transposed back, so that each is stored contiguously.
void RowEmitter::store_lists(const TopK& top, const LaneRows& at, Block* block) {
  const int64_t step = is_gpu() ? 1 : lanes_;
  for (int64_t from = top.first; from < top.last; from += step) {
    const int64_t count = std::min<int64_t>(step, top.last - from);
    if (count > 1) {
      store_turned(top, at, from, count, block);
      continue;
    }
    const ExprId slot = k_.constant(from);
    in_lanes(
        at,
        [&](Block* to) {
          store_top(top, Expr(from), k_.load(top.keys, {slot}), k_.load(top.places, {slot}), to);
        },
        block);
  }
  members_[0].digits[at.digit] = at.first;
}

void RowEmitter::store_turned(const TopK& top, const LaneRows& at, int64_t from, int64_t count,
                              Block* block) {
  const BufferId keys = lane_registers("rowkeys", top.key, lanes_),
                 places = lane_registers("rowplaces", Type::s32, lanes_);
  for (const bool of_keys : {true, false}) {
    const Type type = of_keys ? top.key : Type::s32;
    const BufferId lists = of_keys ? top.keys : top.places, turned = of_keys ? keys : places;
    const VarId l = k_.add_var("l");
    Block body;
    std::vector<ExprId> square;
    for (int64_t j = 0; j < lanes_; ++j)
      square.push_back(j < count ? k_.load(lists, {k_.constant(from + j)})
                                 : emit_constant(&k_, type, 0));
    stitch::turn(&k_, &square, k_.ref(l), type, &body);
    for (int64_t c = 0; c < at.rows; ++c)
      body.push_back(make_store(turned, {k_.constant(c)}, square[static_cast<size_t>(c)]));
    block->push_back(lanes_loop(l, lanes_, std::move(body)));
  }
  const VarId l = k_.add_var("l");
  const Expr slot = Expr(from) + Expr::digit(s_.add_scope(l, count));
  Block body;
  for (int64_t c = 0; c < at.rows; ++c) {
    members_[0].digits[at.digit] = at.first + Expr(c);
    store_top(top, slot, k_.load(keys, {k_.constant(c)}), k_.load(places, {k_.constant(c)}), &body);
  }
  members_[0].digits[at.digit] = at.first;
  if (!body.empty()) block->push_back(lanes_loop(l, count, std::move(body)));
}

}  // namespace heddle::stitch
