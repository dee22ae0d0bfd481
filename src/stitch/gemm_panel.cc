// How the GEMM family reads B: packed panels, columns in place, or a copy of a panel in scratch.
#include <algorithm>

#include "stitch/gemm_emitter.h"

namespace heddle::stitch {

// Copies the panel's columns, contiguous and padded with zeros to whole vectors. Where B is
// contiguous along k instead, squares of lanes by lanes are transposed in registers.
void GemmEmitter::copy_panel(const Panel& panel, Block* block) {
  const auto [along, elems] = run_of_b();
  const bool whole = elems == shape_.k_extent;
  std::vector<VarId> vars;
  for (int k : shape_.k) {
    vars.push_back(k_.add_var("k"));
    const bool loops = k != along && !whole;
    digits_[k] = loops ? Expr::digit(s_.add_scope(vars.back(), extents_[k])) : Expr(0);
  }
  Block body;
  for (int v = 0; v < panel.vectors; ++v) {
    if (along < 0)
      copy_columns(panel, v, &body);
    else
      turn_columns(panel, v, along, elems, &body);
  }
  digits_[shape_.n] = Expr(0);
  for (size_t i = vars.size(); i-- > 0;) {
    if (shape_.k[i] == along || whole) continue;
    Block outer;
    outer.push_back(
        make_loop(LoopKind::serial, vars[i], k_.constant(extents_[shape_.k[i]]), std::move(body)));
    body = std::move(outer);
  }
  for (Stmt& stmt : body) block->push_back(std::move(stmt));
  for (int k : shape_.k) digits_[k] = Expr(0);
}

// The digit of k along which B is contiguous, and for how many elements; -1: none. Where all of k
// is contiguous, as in filters with the window innermost, it is the last digit, used beyond its
// extent.
std::pair<int, int64_t> GemmEmitter::run_of_b() {
  const Expr& b = coordinate(shape_.b_load);
  if (shape_.b_n == 1) return {-1, 0};
  bool together = word_ == 1 && shape_.k_extent >= gemm_.lanes;
  for (size_t i = 0; i < shape_.k.size(); ++i)
    together = together && b.factor_of(shape_.k[i]) == k_places_[i];
  if (together) return {shape_.k.back(), shape_.k_extent};
  int along = -1;
  for (int k : shape_.k)
    if (b.factor_of(k) == (k == shape_.k.back() ? word_ : 1) && extents_[k] >= gemm_.lanes / 2)
      along = k;
  return {along, along < 0 ? 0 : extents_[along]};
}

void GemmEmitter::copy_columns(const Panel& panel, int v, Block* block) {
  VarId l = k_.add_var("l");
  int ls = s_.add_scope(l, gemm_.lanes);
  Expr column = Expr(int64_t{v} * gemm_.lanes) + Expr::digit(ls);
  digits_[shape_.n] = panel.number * width_ + column;
  std::vector<ExprId> parts;
  for (int64_t i = 0; i < word_; ++i)
    parts.push_back(rounded(columns_load(input_of(shape_.b_load),
                                         operand(shape_.b_load) + Expr(i * part_step(b_place_)), ls,
                                         v, panel.width)));
  Block store;
  store.push_back(make_store(panel_, {index(k_linear() * width_ + column)},
                             word_ > 1 ? word_of(parts) : widened(parts[0])));
  block->push_back(lanes_loop(l, gemm_.lanes, std::move(store)));
}

// An element of B in the type in which it is multiplied, where it is stored in a wider one.
ExprId GemmEmitter::rounded(ExprId x) {
  const Type type = schedule::load_type(stage_, shape_.b_load);
  return word_ > 1 && k_.expr(x).type != type ? k_.convert(x, type) : x;
}

// Copies vector v of the panel for `elems` elements of digit `along`.
void GemmEmitter::turn_columns(const Panel& panel, int v, int along, int64_t elems, Block* block) {
  const int64_t lanes = gemm_.lanes, squares = elems / lanes;
  if (squares > 0) {
    VarId var = k_.add_var("square");
    digits_[along] = Expr::digit(s_.add_scope(var, squares)) * lanes;
    Block body;
    turn_square(panel, v, along, lanes, &body);
    block->push_back(make_loop(LoopKind::serial, var, k_.constant(squares), std::move(body)));
  }
  if (int64_t rest = elems % lanes) {
    digits_[along] = Expr(squares * lanes);
    turn_square(panel, v, along, rest, block);
  }
  digits_[along] = Expr(0);
}

// Copies `count` elements along k from digits_ on, of at most `lanes` columns: loaded along k,
// transposed, stored along n.
void GemmEmitter::turn_square(const Panel& panel, int v, int along, int64_t count, Block* block) {
  const int64_t lanes = gemm_.lanes;
  const int64_t columns = std::min(lanes, panel.width - v * lanes);
  const Expr first = digits_[along];
  VarId l = k_.add_var("l");
  Expr lane = Expr::digit(s_.add_scope(l, lanes));
  ExprId lane_number = k_.ref(l);
  const BufferId b = input_of(shape_.b_load);
  const ExprId outside = zero(k_.buffer(b).type);
  Block body;
  auto named = [&](ExprId x) {
    VarId name = k_.add_var("t", operand_type());
    body.push_back(make_let(name, x));
    return k_.ref(name);
  };
  std::vector<ExprId> square;
  digits_[along] = first + lane;
  for (int64_t c = 0; c < lanes; ++c) {
    digits_[shape_.n] = panel.number * width_ + Expr(v * lanes + c);
    ExprId inside = k_.compare(Op::lt, lane_number, k_.constant(count));
    std::vector<ExprId> parts;
    for (int64_t i = 0; i < word_ && c < columns; ++i) {
      ExprId at = index(operand(shape_.b_load) + Expr(i * part_step(b_place_)));
      parts.push_back(
          rounded(count == lanes ? k_.load(b, {at}) : k_.load_if(b, {at}, inside, outside)));
    }
    if (c >= columns)
      square.push_back(zero(operand_type()));
    else
      square.push_back(named(word_ > 1 ? word_of(parts) : widened(parts[0])));
  }
  turn(&k_, &square, lane_number, operand_type(), &body);
  for (int64_t j = 0; j < count; ++j) {
    digits_[along] = first + Expr(j);
    Expr at = k_linear() * width_ + Expr(v * lanes) + lane;
    body.push_back(make_store(panel_, {index(at)}, square[j]));
  }
  digits_[along] = first;
  block->push_back(lanes_loop(l, lanes, std::move(body)));
}

// A load of lanes whose last vector may be short: zero beyond the width.
ExprId GemmEmitter::columns_load(BufferId buffer, const Expr& at, int lane_scope, int v,
                                 int64_t width) {
  int64_t here = width - int64_t{v} * gemm_.lanes;
  if (here >= gemm_.lanes) return k_.load(buffer, {index(at)});
  ExprId mask = k_.compare(Op::lt, k_.ref(s_.scope_[lane_scope]), k_.constant(here));
  return k_.load_if(buffer, {index(at)}, mask, zero(k_.buffer(buffer).type));
}

// Vector v of the panel at the current k.
ExprId GemmEmitter::b_vector(const Panel& panel, int v, int lane_scope) {
  Expr column = Expr(int64_t{v} * gemm_.lanes) + Expr::digit(lane_scope);
  if (gemm_.copy_b) return k_.load(panel_, {index(k_linear() * width_ + column)});
  if (shape_.b_panel > 0) {  // padded to whole vectors
    Expr base = operand(shape_.b_load) + panel.number * shape_.b_panel_stride;
    ExprId x = k_.load(input_of(shape_.b_load), {index(base + column)});
    return word_ > 1 ? x : widened(x);
  }
  digits_[shape_.n] = panel.number * width_ + column;
  Expr at = operand(shape_.b_load);
  digits_[shape_.n] = Expr(0);
  // Whole vectors are read if they stay inside B: lanes past the last column are not stored.
  const int64_t behind = panel.vectors * gemm_.lanes - panel.width;
  const int64_t elems =
      s_.placed_.graph.inputs[stage_.loads[shape_.b_load].source.input].shape.elems();
  if (behind > 0 && shape_.n_extent <= width_ && shape_.b_n == 1 &&
      index::bounds(coordinate(shape_.b_load), extents_).high + behind < elems)
    return widened(k_.load(input_of(shape_.b_load), {index(at)}));
  return widened(columns_load(input_of(shape_.b_load), at, lane_scope, v, panel.width));
}

}  // namespace heddle::stitch
