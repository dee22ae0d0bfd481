// Windows over an image with contiguous channels (schedule/windows.h): for each block of output
// columns and each vector of channels the sums stay in registers, while a loop runs over the
// window's rows inside the image and its columns are unrolled. Blocks at the left and right border
// omit the taps outside the image; the blocks between them are one loop without guards.
#include <algorithm>
#include <tuple>

#include "schedule/gemm.h"
#include "schedule/windows.h"
#include "stitch/row_emitter.h"

namespace heddle::stitch {

using stage::Own;

// A loop over a reduced digit, restricted to the elements inside the image.
struct RowEmitter::WindowRows {
  const Own* own = nullptr;
  std::vector<index::Guard> guards;  // that restrict it
  Expr first;
  ExprId trips;
};

// The roles of the row's loops, and the state while they are emitted.
struct RowEmitter::Window {
  std::vector<const Own*> outer;
  std::vector<WindowRows> rows;
  const Own *column = nullptr, *lane = nullptr;
  std::vector<const Own*> taps;               // unrolled reduced digits
  std::vector<index::Guard> guards, borders;  // all; those outside which a tap adds nothing
  // Products in words: their instruction, the reduced digit that counts words, their loads.
  const kernel::MmaDescriptor* mma = kernel::plain_mma();
  int words = -1;
  schedule::Sides sides;
  std::vector<int64_t> extents;  // of the stage, in words
};

void RowEmitter::move(const Own& own, const Expr& by) {
  for (size_t m = 0; m < members_.size(); ++m)
    if (own.digits[m] >= 0)
      members_[m].digits[own.digits[m]] = members_[m].digits[own.digits[m]] + by;
}

void RowEmitter::emit_window(Block* block) {
  Window window;
  const Stage& stage = stage_of(members_[0]);
  for (const Own& own : row_.own) {
    const bool reduced = own.digits[0] >= static_cast<int>(stage.out.size());
    if (own.kind == stage::LoopKind::unrolled) {
      if (reduced) {
        window.taps.push_back(&own);
      } else {
        window.column = &own;
      }
    }
    if (own.kind != stage::LoopKind::serial) continue;
    if (reduced) {
      window.rows.push_back({&own, {}, {}, {}});
    } else {
      window.outer.push_back(&own);
    }
  }
  window.lane = &row_.own.back();
  HEDDLE_CHECK(window.column, "{}: a window without columns", stage.name);
  window.guards = schedule::all_guards(stage);
  window.borders = schedule::border_guards(stage);
  find_window_words(&window);
  emit_window_outer(window, 0, block);
}

// If an operand consists of whole words and has no other reader, its buffer becomes one of words.
void RowEmitter::find_window_words(Window* window) {
  if (!row_.nest()->mma->is_dot()) return;
  const Stage& stage = stage_of(members_[0]);
  window->mma = row_.nest()->mma;
  window->sides = *schedule::find_sides(stage);
  window->extents = stage.extents();
  for (const Own* own : window->taps) {
    int64_t& extent = window->extents[static_cast<size_t>(own->digits[0])];
    if (own->by == extent) continue;
    window->words = own->digits[0];
    extent = own->by;
  }
  HEDDLE_CHECK(window->words >= 0, "{}: nothing counts its words", stage.name);
  const int64_t word = window->mma->k;
  for (int number : {window->sides.a, window->sides.b}) {
    const stage::Load& load = stage.loads[static_cast<size_t>(number)];
    auto part = [&](int64_t i) {
      return stage::in_words(load.coordinates[0], window->words, word, window->extents, i);
    };
    bool whole = mod(part(0), word, window->extents) == Expr(0);
    for (int64_t i = 1; i < word; ++i) whole &= part(i) == part(0) + Expr(i);
    kernel::Buffer& buffer = k_.buffers[s_.inputs_[load.source.input].index()];
    if (!whole || buffer.extents[0] < 0 || buffer.extents[0] % word != 0 ||
        schedule::is_read_elsewhere(graph(), row_.joined[0], number))
      continue;
    buffer.type = window->mma->word();
    buffer.extents[0] /= word;
  }
}

// A word of an operand, zero outside the image: loaded from a buffer of words, or assembled.
ExprId RowEmitter::window_word(const Window& window, const Stitcher::Context& context, int number) {
  const stage::Load& load = stage_of(members_[0]).loads[static_cast<size_t>(number)];
  const BufferId buffer = s_.inputs_[load.source.input];
  const int64_t word = window.mma->k;
  Stitcher::Context at = context;
  const ExprId inside = s_.guards(&at, load.guards);
  const kernel::Expr& known = k_.expr(inside);
  const bool always = known.op == Op::constant && known.imm != 0;
  auto element = [&](const Expr& place) {
    const ExprId index = s_.index_expr(s_.in_scope(context, place));
    if (always) return k_.load(buffer, {index});
    return k_.load_if(buffer, {index}, inside, emit_constant(&k_, k_.buffer(buffer).type, 0));
  };
  auto part = [&](int64_t i) {
    return stage::in_words(load.coordinates[0], window.words, word, window.extents, i);
  };
  if (k_.buffer(buffer).type == window.mma->word())
    return element(floor_div(part(0), word, window.extents));
  std::vector<ExprId> parts;
  for (int64_t i = 0; i < word; ++i) parts.push_back(element(part(i)));
  return emit_word(&k_, window.mma->word(), parts);
}

// Multiplies a word of either side and adds the product to the sum.
ExprId RowEmitter::window_product(const Window& window, Stitcher::Context* context, ExprId sum,
                                  const std::function<ExprId(ExprId)>& name) {
  const ExprId a = name(window_word(window, *context, window.sides.a));
  const ExprId b = name(window_word(window, *context, window.sides.b));
  return k_.add({Op::dot, window.mma->d, {a, b, sum}, kernel::mma_row(*window.mma)});
}

void RowEmitter::emit_window_outer(const Window& window, size_t level, Block* block) {
  const std::vector<Member> saved = members_;
  if (level < window.outer.size()) {
    const Own& own = *window.outer[level];
    const int64_t trips = members_[0].extents[own.digits[0]];
    VarId var = k_.add_var("i");
    move(own, Expr::digit(s_.add_scope(var, trips)));
    Block body;
    emit_window_outer(window, level + 1, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(trips), std::move(body)));
  } else {
    Window here = window;
    for (WindowRows& rows : here.rows) find_window_rows(here, &rows, block);
    emit_window_columns(here, block);
  }
  members_ = saved;
}

// The range of a row digit's elements inside the image.
void RowEmitter::find_window_rows(const Window& window, WindowRows* rows, Block* block) {
  const Member& member = members_[0];
  const int digit = rows->own->digits[0];
  const int64_t size = member.extents[digit];
  ExprId begin = k_.constant(0), end = k_.constant(size);
  for (const index::Guard& guard : window.borders) {
    if (!guard.value.uses(digit)) continue;
    rows->guards.push_back(guard);
    const Expr rest = s_.in_scope(s_.context(member.stage, member.digits), guard.value);
    const int64_t step = guard.value.factor_of(digit);
    // The first element with step·element + rest >= bound.
    auto first = [&](int64_t bound) {
      return k_.binary(Op::floor_div, s_.index_expr(Expr(bound + step - 1) - rest),
                       k_.constant(step));
    };
    begin = k_.binary(Op::max, begin, first(guard.low));
    end = k_.binary(Op::min, end, first(guard.high));
  }
  rows->trips = k_.constant(size);
  if (rows->guards.empty()) return;
  VarId start = k_.add_var("first");
  block->push_back(make_let(start, begin));
  rows->trips = k_.binary(Op::max, k_.constant(0), k_.binary(Op::sub, end, k_.ref(start)));
  rows->first = Expr::digit(s_.add_scope(start, size));
}

// Whether every guard that depends on the column holds for columns [first, first + count).
bool RowEmitter::is_inside(const Window& window, int64_t first, int64_t count) {
  const Member& member = members_[0];
  for (const index::Guard& guard : window.guards) {
    const int column = window.column->digits[0];
    if (!guard.value.uses(column)) continue;
    for (int64_t at : {first, first + count - 1}) {
      std::vector<Expr> digits = member.digits;
      digits[column] = digits[column] + Expr(at);
      for (int64_t tap = 0; tap < tap_count(window); ++tap) {
        for (const auto& [digit, k] : tap_digits(window, tap)) digits[digit] = Expr(k);
        const index::Range range =
            bounds(s_.in_scope(s_.context(member.stage, digits), guard.value), s_.scope_extents_);
        if (range.low < guard.low || range.high >= guard.high) return false;
      }
    }
  }
  return true;
}

void RowEmitter::emit_window_columns(const Window& window, Block* block) {
  const int64_t extent = members_[0].extents[window.column->digits[0]], by = window.column->by;
  const int64_t whole = extent / by;
  for (int64_t i = 0; i < whole;) {
    int64_t run = 0;
    while (i + run < whole && is_inside(window, (i + run) * by, by)) ++run;
    if (run < 2) {
      emit_window_block(window, Expr(i * by), by, block);
      ++i;
      continue;
    }
    VarId var = k_.add_var("b");
    Block body;
    emit_window_block(window, Expr(i * by) + Expr::digit(s_.add_scope(var, run)) * by, by, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(run), std::move(body)));
    i += run;
  }
  if (extent > whole * by) emit_window_block(window, Expr(whole * by), extent - whole * by, block);
}

// `columns` columns from `first`, all channels: with few columns, several vectors of channels at
// once.
void RowEmitter::emit_window_block(const Window& window, const Expr& first, int64_t columns,
                                   Block* block) {
  const std::vector<Member> saved = members_;
  move(*window.column, first);
  const int64_t extent = members_[0].extents[window.lane->digits[0]];
  const int64_t vectors = columns >= 4 ? 1 : 4 / columns;
  const int64_t step = vectors * lanes_, blocks = extent / step, rest = extent - blocks * step;
  const std::vector<Member> at = members_;
  if (blocks > 0) {
    VarId var = k_.add_var("c");
    move(*window.lane, Expr::digit(s_.add_scope(var, blocks)) * step);
    Block body;
    emit_window_tile(window, columns, step, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(blocks), std::move(body)));
    members_ = at;
  }
  if (rest > 0) {
    move(*window.lane, Expr(blocks * step));
    emit_window_tile(window, columns, rest, block);
  }
  members_ = saved;
}

void RowEmitter::emit_window_tile(const Window& window, int64_t columns, int64_t width,
                                  Block* block) {
  const std::vector<Member> saved = members_;
  const Stage& stage = stage_of(members_[0]);
  const auto vectors = static_cast<int>((width + lanes_ - 1) / lanes_);
  BufferId sums = partial_buffer(stage, members_[0].stage, 0, static_cast<int>(columns) * vectors);
  // Every vector: a block for all columns.
  auto each_vector = [&](const std::function<void(int64_t first_slot, Block*)>& body, Block* to) {
    const std::vector<Member> at = members_;
    for (int v = 0; v < vectors; ++v) {
      const int64_t here = std::min<int64_t>(lanes_, width - int64_t{v} * lanes_);
      VarId l = k_.add_var("l");
      move(*window.lane, Expr(int64_t{v} * lanes_) + Expr::digit(s_.add_scope(l, here)));
      Block inner;
      body(v * columns, &inner);
      to->push_back(lanes_loop(l, here, std::move(inner)));
      members_ = at;
    }
  };
  each_vector(
      [&](int64_t slot, Block* to) {
        Stitcher::Context context = s_.context(members_[0].stage, members_[0].digits);
        bool neutral = true;
        const ExprId start = starts(&context, stage, &neutral)[0];
        for (int64_t c = 0; c < columns; ++c)
          to->push_back(make_store(sums, {k_.constant(slot + c)}, start));
      },
      block);
  const size_t assumed = s_.assumed_.size();
  std::vector<std::pair<VarId, ExprId>> loops;
  for (const WindowRows& rows : window.rows) {
    const VarId var = k_.add_var("r");
    loops.emplace_back(var, rows.trips);
    move(*rows.own,
         rows.first + Expr::digit(s_.add_scope(var, members_[0].extents[rows.own->digits[0]])));
  }
  for (const WindowRows& rows : window.rows)
    for (const index::Guard& guard : rows.guards)
      s_.assumed_.push_back(
          {s_.in_scope(s_.context(members_[0].stage, members_[0].digits), guard.value), guard.low,
           guard.high});
  Block body;
  each_vector([&](int64_t slot, Block* to) { emit_window_taps(window, sums, slot, columns, to); },
              &body);
  members_ = saved;
  s_.assumed_.resize(assumed);
  add_around(loops, std::move(body), block);
  each_vector(
      [&](int64_t slot, Block* to) {
        const std::vector<Member> at = members_;
        for (int64_t c = 0; c < columns; ++c) {
          move(*window.column, Expr(c));
          finish_window_point(k_.load(sums, {k_.constant(slot + c)}), to);
          members_ = at;
        }
      },
      block);
}

int64_t RowEmitter::tap_count(const Window& window) {
  int64_t count = 1;
  for (const Own* own : window.taps) count *= own->by;
  return count;
}

// The unrolled digits of tap number `tap`, and their elements.
std::vector<std::pair<int, int64_t>> RowEmitter::tap_digits(const Window& window, int64_t tap) {
  std::vector<std::pair<int, int64_t>> result;
  for (size_t i = window.taps.size(); i-- > 0;) {
    result.emplace_back(window.taps[i]->digits[0], tap % window.taps[i]->by);
    tap /= window.taps[i]->by;
  }
  return result;
}

// Pairs of tap and column, tap by tap. Groups follow the order of the image, so that each element
// is read, and broadcast to the lanes, once for all its uses: all inputs of a group together where
// registers hold their weights, else input by input.
std::vector<std::pair<int64_t, int64_t>> RowEmitter::order_of_taps(const Window& window,
                                                                   int64_t columns) const {
  const Stage& stage = stage_of(members_[0]);
  const int column = window.column->digits[0];
  const Expr* along = nullptr;
  for (const stage::Load& load : stage.loads)
    for (const Expr& x : load.coordinates)
      if (!along && x.uses(column)) along = &x;
  struct Step {
    int64_t input, place, tap, column;
  };
  std::vector<Step> steps;
  const int64_t inner = window.taps.empty() ? 1 : window.taps.back()->by;
  for (int64_t tap = 0; tap < tap_count(window); ++tap) {
    int64_t place = 0;
    if (along && !window.taps.empty())
      place = along->factor_of(window.taps.back()->digits[0]) * (tap % inner);
    for (int64_t c = 0; c < columns; ++c)
      steps.push_back({tap / inner, place + (along ? along->factor_of(column) * c : 0), tap, c});
  }
  const bool groups = along && along->factor_of(window.lane->digits[0]) == 0;
  const bool together =
      tap_count(window) + columns + (window.words >= 0 ? 8 : 4) <= s_.target_.vector_registers;
  std::stable_sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
    if (!groups) return std::tie(a.tap, a.column) < std::tie(b.tap, b.column);
    return together ? std::tie(a.place, a.input, a.tap) < std::tie(b.place, b.input, b.tap)
                    : std::tie(a.input, a.place, a.tap) < std::tie(b.input, b.place, b.tap);
  });
  std::vector<std::pair<int64_t, int64_t>> result;
  for (const Step& step : steps) result.emplace_back(step.tap, step.column);
  return result;
}

// One row of the window for all columns of the block: loads that several of them share are done
// once.
void RowEmitter::emit_window_taps(const Window& window, BufferId sums, int64_t slot,
                                  int64_t columns, Block* block) {
  const std::vector<Member> saved = members_;
  const Stage& stage = stage_of(members_[0]);
  std::unordered_map<uint32_t, ExprId> named;
  auto name = [&](ExprId x) {
    if (k_.expr(x).op == Op::var || k_.expr(x).op == Op::constant) return x;
    auto [found, fresh] = named.try_emplace(static_cast<uint32_t>(x.index()));
    if (fresh) found->second = name_all({x}, block)[0];
    return found->second;
  };
  const Node& element = stage.nodes[stage.values[0].result];
  const bool product = !stage.combine && element.kind == Node::Kind::op;
  for (const auto& [tap, column] : order_of_taps(window, columns)) {
    move(*window.column, Expr(column));
    for (const auto& [digit, k] : tap_digits(window, tap))
      members_[0].digits[digit] = members_[0].digits[digit] + Expr(k);
    Stitcher::Context context = s_.context(members_[0].stage, members_[0].digits);
    members_ = saved;
    const bool outside =
        std::any_of(window.borders.begin(), window.borders.end(), [&](const index::Guard& guard) {
          const index::Range range = bounds(s_.in_scope(context, guard.value), s_.scope_extents_);
          return range.high < guard.low || range.low >= guard.high;
        });
    if (outside) continue;
    const ExprId at = k_.constant(slot + column);
    if (window.words >= 0) {
      const ExprId sum = window_product(window, &context, k_.load(sums, {at}), name);
      block->push_back(make_store(sums, {at}, sum));
      continue;
    }
    if (product) {
      for (int operand : element.operands) context.memo[operand] = name(s_.node(&context, operand));
    } else {
      const int result = stage.values[0].result;
      context.memo[result] = name(s_.node(&context, result));
    }
    block->push_back(make_store(sums, {at}, accumulate(&context, stage, {k_.load(sums, {at})})[0]));
  }
}

// The window's value at one point, and the maps of its epilogue.
void RowEmitter::finish_window_point(ExprId sum, Block* block) {
  std::vector<std::pair<int, std::vector<Home>>> saved;
  for (size_t m = 0; m < members_.size(); ++m) {
    Member& member = members_[m];
    saved.emplace_back(member.stage, s_.homes_[member.stage]);
    if (m == 0) {
      finish(&member, {sum}, block);
      continue;
    }
    const Stage& stage = stage_of(member);
    Stitcher::Context context = s_.context(member.stage, member.digits);
    for (size_t v = 0; v < stage.values.size(); ++v)
      map_value(&context, member, static_cast<int>(v), member.digits, block);
  }
  for (auto& [stage, homes] : saved) s_.homes_[stage] = homes;
}

}  // namespace heddle::stitch
