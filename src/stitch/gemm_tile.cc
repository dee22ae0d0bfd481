// One register tile of the GEMM family: cleared, accumulated over k, finished by the epilogue.
#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

// Place of a row in the tile's registers: a line has a number only where there are several.
std::vector<ExprId> GemmEmitter::acc_at(const Expr& line, const Expr& row, int v) {
  if (gemm_.my == 1) return {index(row), k_.constant(v)};
  return {index(line), index(row), k_.constant(v)};
}

// `body` for each line and row of a part of the tile, fully unrolled.
Block GemmEmitter::over_tile(const Segment& lines, const Segment& rows,
                             const std::function<Block(const Expr& line, const Expr& row)>& body) {
  auto loop = [&](const char* name, const Segment& part, auto&& inner) {
    const int64_t count = part.row_high - part.row_low;
    VarId var = k_.add_var(name);
    Block block = inner(Expr(part.row_low) + Expr::digit(s_.add_scope(var, count)));
    Block result;
    result.push_back(make_loop(LoopKind::unrolled, var, k_.constant(count), std::move(block)));
    return result;
  };
  auto over_rows = [&](const Expr& line) {
    return loop("i", rows, [&](const Expr& row) { return body(line, row); });
  };
  return gemm_.my == 1 ? over_rows(Expr(lines.row_low)) : loop("j", lines, over_rows);
}

BufferId GemmEmitter::sum_registers(std::vector<int64_t> extents) {
  kernel::Buffer registers;
  registers.name = "acc";
  registers.type = shape_.type;
  registers.extents = std::move(extents);
  registers.space = kernel::Space::reg;
  registers.lanes = gemm_.lanes;
  return k_.add_buffer(registers);
}

void GemmEmitter::emit_tile(const Panel& panel, Tile tile, Block* block) {
  if (gemm_.tile) return emit_fragments(panel, tile, block);
  const int64_t line_count = gemm_.my > 1 ? tile.lines->rows : 1;
  const Segment all_lines{0, 1, 0, line_count}, all_rows{0, 1, 0, tile.rows->rows};
  std::vector<int64_t> extents{tile.rows->rows, panel.vectors};
  if (gemm_.my > 1) extents.insert(extents.begin(), line_count);
  tile.acc = sum_registers(std::move(extents));
  if (block_.last) prefetch_results(panel, tile, block);
  if (block_.first) {
    Block clear;
    for (int v = 0; v < panel.vectors; ++v) {
      Block one = over_tile(all_lines, all_rows, [&](const Expr& line, const Expr& row) {
        return Block{make_store(tile.acc, acc_at(line, row, v), zero(shape_.type))};
      });
      for (Stmt& stmt : one) clear.push_back(std::move(stmt));
    }
    block->push_back(lanes_loop(k_.add_var("l"), gemm_.lanes, std::move(clear)));
  } else {
    move_sums(panel, tile, true, block);
  }
  Block sums;
  const std::vector<Segment> one_line{{0, 1, 0, 1}};
  for (const Segment& lines : gemm_.my > 1 ? tile.lines->segments : one_line)
    for (const Segment& rows : tile.rows->segments) emit_segment(panel, tile, lines, rows, &sums);
  if (ExprId inside = guard_of_lines(); inside.valid())
    block->push_back(make_if(inside, std::move(sums)));
  else
    for (Stmt& stmt : sums) block->push_back(std::move(stmt));
  if (block_.last)
    emit_epilogue(panel, tile, block);
  else
    move_sums(panel, tile, false, block);
}

// The guard for padding without a window (of one element) along a digit that a loop drives: it
// holds for the whole tile or for none of it.
ExprId GemmEmitter::guard_of_lines() {
  ExprId all;
  for (const Window& window : shape_.windows) {
    const bool in_tile = window.out == shape_.m || (window.out == shape_.y && gemm_.my > 1);
    if (window.k >= 0 || (in_tile && window.out >= 0)) continue;
    Expr at =
        (window.out >= 0 ? digits_[window.out] * window.stride : Expr(0)) + Expr(window.offset);
    ExprId inside = k_.binary(Op::and_, k_.compare(Op::ge, index(at), k_.constant(0)),
                              k_.compare(Op::lt, index(at), k_.constant(window.span)));
    all = all.valid() ? k_.binary(Op::and_, all, inside) : inside;
  }
  return all;
}

// The ranges of the loops over k, outermost first: those that depend on a loop variable, then the
// rest in the order of B.
std::vector<GemmEmitter::KRange> GemmEmitter::k_ranges(const Segment& lines,
                                                       const Segment& rows) const {
  std::vector<KRange> moving, fixed;
  for (int digit : shape_.k) {
    const bool cut = is_cut_ && digit == shape_.k[0];
    KRange range{digit, 0, cut ? block_.count : extents_[digit], nullptr};
    const Window* window = shape_.window_over(digit);
    if (!window || lines_.valid()) {
      fixed.push_back(range);
    } else if (window->out >= 0 && window->out == shape_.m) {
      fixed.push_back({digit, rows.k_low, rows.k_high - rows.k_low, nullptr});
    } else if (window->out >= 0 && window->out == shape_.y && gemm_.my > 1) {
      fixed.push_back({digit, lines.k_low, lines.k_high - lines.k_low, nullptr});
    } else {
      range.moving = window;
      moving.push_back(range);
    }
  }
  moving.insert(moving.end(), fixed.begin(), fixed.end());
  return moving;
}

// Merges the innermost ranges while the strides of both operands continue from one to the next. The
// last digit carries the merged count (its value may exceed its extent: accesses are linear in k),
// the others stay at their starts.
int64_t GemmEmitter::merge_inner(std::vector<KRange>* ranges) {
  const KRange inner = ranges->back();
  const Expr& a = a_at_;
  ranges->pop_back();
  int64_t count = inner.count;
  bool whole = !inner.moving && count == extents_[inner.digit];
  while (whole && !ranges->empty() && !ranges->back().moving) {
    const KRange outer = ranges->back();
    if (a.factor_of(outer.digit) != a.factor_of(inner.digit) * count ||
        b_factor(outer.digit) != b_factor(inner.digit) * count)
      break;
    whole = outer.count == extents_[outer.digit];
    digits_[outer.digit] = Expr(outer.low);
    count *= outer.count;
    ranges->pop_back();
  }
  ranges->push_back(inner);
  return count;
}

int64_t GemmEmitter::b_factor(int digit) const {
  if (!gemm_.copy_b) return coordinate(shape_.b_load).factor_of(digit);
  for (size_t i = 0; i < shape_.k.size(); ++i)
    if (shape_.k[i] == digit) return k_places_[i];
  return 0;
}

// The unrolling of k: without remainder if possible. Tiles at an edge serve few rows: no unrolling.
int64_t GemmEmitter::unrolling(int64_t inner, size_t segments) const {
  const int64_t ku = segments > 1 ? 1 : gemm_.ku;
  if (segments == 1 && inner % ku != 0) {
    for (int64_t other : {5, 3, 7})
      if (inner % other == 0) return other;
  }
  return std::max<int64_t>(1, std::min(ku, inner));
}

// The part of a window that is inside the image at the current point: returns its start, a
// variable, and its length in `trips`.
Expr GemmEmitter::moving_range(const KRange& range, ExprId* trips, Block* block) {
  const Window& window = *range.moving;
  const int64_t step = std::abs(window.dilation);
  Expr at = (window.out >= 0 ? digits_[window.out] * window.stride : Expr(0)) + Expr(window.offset);
  // Divided by `step`: the first k inside, and the first k past the end.
  Expr below = window.dilation > 0 ? at * -1 + Expr(step - 1) : at + Expr(step - window.span);
  Expr upto = window.dilation > 0 ? at * -1 + Expr(window.span - 1 + step) : at + Expr(step);
  auto divided = [&](const Expr& x) {
    return k_.binary(Op::floor_div, index(x), k_.constant(step));
  };
  const Expr start = k_start(range.digit);
  VarId low = k_.add_var("k_low");
  block->push_back(make_let(low, k_.binary(Op::max, divided(below), index(start))));
  ExprId high = k_.binary(Op::min, divided(upto), index(start + Expr(range.count)));
  *trips = k_.binary(Op::sub, high, k_.ref(low));
  return Expr::digit(s_.add_scope(low, extents_[range.digit]));
}

// The tile's sums over the elements of one segment of lines and one of rows.
void GemmEmitter::emit_segment(const Panel& panel, const Tile& tile, const Segment& lines,
                               const Segment& rows, Block* block) {
  struct Around {
    VarId var;
    ExprId trips;
  };
  std::vector<Around> loops;
  std::vector<KRange> ranges = k_ranges(lines, rows);
  const int64_t count = merge_inner(&ranges);
  const bool moving_inner = ranges.back().moving != nullptr;
  for (size_t i = 0; i + (moving_inner ? 0 : 1) < ranges.size(); ++i) {
    const KRange& range = ranges[i];
    digits_[range.digit] = Expr(range.low);
    if (range.count == 1 && !range.moving) continue;
    Around loop{k_.add_var("k"), k_.constant(range.count)};
    if (range.moving) digits_[range.digit] = moving_range(range, &loop.trips, block);
    digits_[range.digit] = digits_[range.digit] + Expr::digit(s_.add_scope(loop.var, range.count));
    loops.push_back(loop);
  }
  Block body;
  if (moving_inner) {
    emit_step(panel, tile, lines, rows, &body);
  } else {
    emit_inner(panel, tile, lines, rows, ranges.back(), count, &body);
  }
  for (size_t i = loops.size(); i-- > 0;) {
    Block outer;
    outer.push_back(make_loop(LoopKind::serial, loops[i].var, loops[i].trips, std::move(body)));
    body = std::move(outer);
  }
  for (Stmt& stmt : body) block->push_back(std::move(stmt));
  for (int k : shape_.k) digits_[k] = Expr(0);
}

// `count` elements of k along the innermost range.
void GemmEmitter::emit_inner(const Panel& panel, const Tile& tile, const Segment& lines,
                             const Segment& rows, const KRange& range, int64_t count,
                             Block* block) {
  const size_t segments =
      tile.rows->segments.size() * (gemm_.my > 1 ? tile.lines->segments.size() : 1);
  const int64_t ku = gemm_.tile ? gemm_.tile->k / word_ : unrolling(count, segments);
  const int64_t steps = count / ku, rest = count % ku;
  const size_t digit = static_cast<size_t>(range.digit);
  if (steps > 0) {
    VarId ko = k_.add_var("ko"), ki = k_.add_var("ki");
    const Expr step = Expr::digit(s_.add_scope(ko, steps));
    Expr start = k_start(range.digit) + Expr(range.low) + step * ku;
    Block inner, around;
    digits_[digit] = start;
    prefetch_next(panel, tile, ku, &around);
    if (!lines_.valid()) prefetch_rows(tile, range, step, steps, count, &around);
    if (gemm_.tile) {
      emit_fragment_step(panel, tile, range.digit, &around);
      block->push_back(make_loop(LoopKind::serial, ko, k_.constant(steps), std::move(around)));
      return;
    }
    digits_[digit] = start + Expr::digit(s_.add_scope(ki, ku));
    emit_step(panel, tile, lines, rows, &inner);
    around.push_back(make_loop(LoopKind::unrolled, ki, k_.constant(ku), std::move(inner)));
    block->push_back(make_loop(LoopKind::serial, ko, k_.constant(steps), std::move(around)));
  }
  if (rest > 0) {
    VarId ki = k_.add_var("ki");
    digits_[digit] =
        k_start(range.digit) + Expr(range.low + steps * ku) + Expr::digit(s_.add_scope(ki, rest));
    Block inner;
    emit_step(panel, tile, lines, rows, &inner);
    block->push_back(make_loop(LoopKind::unrolled, ki, k_.constant(rest), std::move(inner)));
  }
}

ExprId GemmEmitter::word_of(const std::vector<ExprId>& parts) {
  return emit_word(&k_, operand_type(), parts);
}

// An fma where the target has one: emulating it costs a hundred times as much.
ExprId GemmEmitter::add_product(ExprId a, ExprId b, ExprId sum) {
  if (word_ > 1) return k_.add({Op::dot, shape_.type, {a, b, sum}, kernel::mma_row(*gemm_.mma)});
  const bool can = s_.target_.has("fma") || s_.target_.has("avx512f");
  if (can && tensor::is_float(shape_.type)) return k_.fma(a, b, sum);
  return k_.binary(Op::add, sum, k_.binary(Op::mul, a, b));
}

// acc += A[row, k] · B[k, column] for one k and the rows that take part.
void GemmEmitter::emit_step(const Panel& panel, const Tile& tile, const Segment& lines,
                            const Segment& rows, Block* block) {
  VarId l = k_.add_var("l");
  int ls = s_.add_scope(l, gemm_.lanes);
  Block body;
  std::vector<ExprId> b;
  for (int v = 0; v < panel.vectors; ++v) {
    VarId name = k_.add_var("b", operand_type());
    body.push_back(make_let(name, b_vector(panel, v, ls)));
    b.push_back(k_.ref(name));
  }
  Block updates = over_tile(lines, rows, [&](const Expr& line, const Expr& row) {
    if (shape_.y >= 0) digits_[shape_.y] = tile.y0 + line;
    if (shape_.m >= 0) digits_[shape_.m] = tile.m0 + row;
    VarId name = k_.add_var("a", operand_type());
    const Expr at = substitute(a_at_, digits_, s_.scope_extents_) - a_base_;
    std::vector<ExprId> parts;
    for (int64_t i = 0; i < word_; ++i)
      parts.push_back(k_.load(a_, {index(at + Expr(i * part_step(a_at_)))}));
    Block update{make_let(name, word_ > 1 ? word_of(parts) : widened(parts[0]))};
    for (int v = 0; v < panel.vectors; ++v) {
      std::vector<ExprId> at = acc_at(line, row, v);
      ExprId sum = k_.load(tile.acc, at);
      update.push_back(make_store(tile.acc, at, add_product(k_.ref(name), b[v], sum)));
    }
    return update;
  });
  for (Stmt& stmt : updates) body.push_back(std::move(stmt));
  block->push_back(lanes_loop(l, gemm_.lanes, std::move(body)));
  if (shape_.y >= 0) digits_[shape_.y] = tile.y0;
}

// Finishes the tile, element by element: the dot's output, and the maps of its epilogue.
void GemmEmitter::emit_epilogue(const Panel& panel, const Tile& tile, Block* block) {
  const Segment lines{0, 1, 0, gemm_.my > 1 ? tile.lines->rows : 1};
  const Segment rows{0, 1, 0, tile.rows->rows};
  for (int v = 0; v < panel.vectors; ++v) {
    int64_t here = std::min<int64_t>(gemm_.lanes, panel.width - int64_t{v} * gemm_.lanes);
    if (is_turned(here) && lines.row_high * rows.row_high > 1) {
      emit_turned(panel, tile, v, here, block);
      continue;
    }
    vector_ = v;
    VarId l = k_.add_var("l");
    Expr column = Expr::digit(s_.add_scope(l, here));
    Block all = over_tile(lines, rows, [&](const Expr& line, const Expr& row) {
      std::vector<Expr> digits(digits_.begin(),
                               digits_.begin() + static_cast<long>(stage_.out.size()));
      if (shape_.y >= 0) digits[shape_.y] = tile.y0 + line;
      if (shape_.m >= 0) digits[shape_.m] = tile.m0 + row;
      digits[shape_.n] = panel.number * width_ + Expr(int64_t{v} * gemm_.lanes) + column;
      return Block{lanes_loop(l, here, finished(digits, k_.load(tile.acc, acc_at(line, row, v))))};
    });
    for (Stmt& stmt : all) block->push_back(std::move(stmt));
  }
}

// The epilogue and the stores for the element at `digits` with the given sum.
Block GemmEmitter::finished(const std::vector<Expr>& digits, ExprId sum, std::vector<Kept>* kept) {
  Block body;
  auto store = [&](int stage, int value, const std::vector<Expr>& at, ExprId x) {
    if (kept && turned_[static_cast<size_t>(stage)])
      kept->push_back({stage, value, x});
    else
      s_.store_value(stage, value, at, x, &body);
  };
  sum = k_.convert(sum, stage_.values[0].type);
  std::vector<std::vector<Home>> saved = s_.homes_;
  if (stage_.values[0].output >= 0 || s_.homes_[dot_][0].kind == Home::Kind::buffer)
    store(dot_, 0, digits, sum);
  s_.homes_[dot_][0] = {Home::Kind::current, sum, {}, false, false};
  for (size_t j = 1; j < joined_.size(); ++j) {
    int number = static_cast<int>(joined_[j].index());
    const Stage& map = s_.placed_.graph.stages[number];
    std::vector<Expr> mine;
    for (const Expr& x : epilogue_digits_[number])
      mine.push_back(substitute(x, digits, s_.scope_extents_));
    Stitcher::Context context = s_.context(number, mine);
    for (size_t value = 0; value < map.values.size(); ++value) {
      ExprId x = s_.node(&context, map.values[value].result);
      VarId name = k_.add_var("e", k_.expr(x).type);
      body.push_back(make_let(name, x));
      x = k_.ref(name);
      store(number, static_cast<int>(value), mine, x);
      s_.homes_[number][value] = {Home::Kind::current, x, {}, false, false};
    }
  }
  add_to_sums(digits, &body);
  s_.homes_ = saved;
  return body;
}

}  // namespace heddle::stitch
