// Decides which stages belong to the GEMM family, by their access maps alone, whatever the layout.
#include <algorithm>

#include "schedule/chain.h"
#include "schedule/gemm.h"
#include "schedule/winograd.h"

namespace heddle::schedule {

using index::Expr;
using index::Guard;

std::optional<Sides> find_sides(const Stage& stage, bool rounded) {
  if (stage.values.size() != 1 || stage.values[0].init >= 0) return std::nullopt;
  const Node& product = stage.nodes[stage.values[0].result];
  if (product.kind != Node::Kind::op || product.opcode != hlo::Opcode::multiply)
    return std::nullopt;
  auto converted = [&](int number) {
    const Node* node = &stage.nodes[number];
    const bool converts = node->kind == Node::Kind::op && node->opcode == hlo::Opcode::convert &&
                          node->type == product.type;
    return converts ? &stage.nodes[node->operands[0]] : node;
  };
  const Node* left = converted(product.operands[0]);
  const Node* wide = converted(product.operands[1]);
  if (rounded != is_rounding(stage, *wide)) return std::nullopt;
  const Node& right = rounded ? stage.nodes[wide->operands[0]] : *wide;
  const std::vector<Guard>* inside = nullptr;
  if (left->kind == Node::Kind::op && left->opcode == hlo::Opcode::select) {
    const Node& condition = stage.nodes[left->operands[0]];
    const Node& outside = stage.nodes[left->operands[2]];
    if (condition.kind != Node::Kind::guard || outside.kind != Node::Kind::constant ||
        outside.bits != 0)
      return std::nullopt;
    inside = &condition.guards;
    left = &stage.nodes[left->operands[1]];
  }
  if (left->kind != Node::Kind::load || right.kind != Node::Kind::load) return std::nullopt;
  const std::vector<Guard>& guards = stage.loads[left->load].guards;
  if (left->type == Type::pred || right.type == Type::pred) return std::nullopt;
  if (inside ? guards != *inside : !guards.empty()) return std::nullopt;
  return Sides{left->load, right.load};
}

bool is_read_elsewhere(const StageGraph& graph, StageId stage, int load) {
  const int input = graph.stage(stage).loads[static_cast<size_t>(load)].source.input;
  int64_t reads = 0;
  for (const Stage& other : graph.stages)
    reads += std::ranges::count_if(other.loads,
                                   [&](const Load& each) { return each.source.input == input; });
  return reads > 1;
}

namespace {

bool affine_in(const Expr& x, int digit) {
  Expr rest = x - Expr::digit(digit) * x.factor_of(digit);
  return !rest.uses(digit);
}

// A guard over at most one out digit and one reduced digit.
bool match_window(const Guard& guard, size_t out_count, Window* window) {
  if (!guard.value.is_affine()) return false;
  window->offset = guard.value.constant() - guard.low;
  window->span = guard.high - guard.low;
  for (const index::Term& term : guard.value.terms()) {
    if (term.atom.kind != index::Atom::Kind::digit) return false;
    bool is_out = term.atom.id < static_cast<int>(out_count);
    int* digit = is_out ? &window->out : &window->k;
    if (*digit >= 0) return false;
    *digit = term.atom.id;
    (is_out ? window->stride : window->dilation) = term.factor;
  }
  return true;
}

bool match_windows(const std::vector<Guard>& guards, const Stage& stage, GemmShape* shape) {
  for (const Guard& guard : guards) {
    Window window;
    if (!match_window(guard, stage.out.size(), &window)) return false;
    if ((window.out >= 0 && shape->window_of(window.out)) ||
        (window.k >= 0 && shape->window_over(window.k)))
      return false;
    shape->windows.push_back(window);
  }
  return true;
}

// S·(n floordiv nr) + (n mod nr) + nr·k: a packed panel, row-major in k. `extents` of the stage.
bool match_panel(const Expr& x, const std::vector<int64_t>& extents, GemmShape* shape) {
  int64_t width = 0, stride = 0;
  bool remainder = false;
  for (const index::Term& term : x.terms()) {
    if (!term.atom.inner) continue;
    int digit = -1;
    if (!term.atom.inner->is_digit(&digit) || digit != shape->n) return false;
    if (term.atom.kind == index::Atom::Kind::quotient) {
      width = term.atom.by;
      stride = term.factor;
    } else {
      if (term.factor != 1) return false;
      remainder = true;
    }
  }
  if (!width && x.factor_of(shape->n) == 1) {  // one panel
    width = x.factor_of(shape->k.back());
    if (width < shape->n_extent) return false;
  } else if (!width || !remainder || x.factor_of(shape->n) != 0) {
    return false;
  }
  int64_t elems = width;
  for (size_t i = shape->k.size(); i-- > 0;) {
    if (x.factor_of(shape->k[i]) != elems) return false;
    elems *= extents[static_cast<size_t>(shape->k[i])];
  }
  shape->b_panel = width;
  shape->b_panel_stride = stride;
  shape->b_n = 1;
  return true;
}

// The same in words of `word` adjacent elements of k.
bool match_word_panel(const Expr& x, const Stage& stage, int64_t word, GemmShape* shape) {
  std::vector<int64_t> extents = stage.extents();
  int64_t& k = extents[static_cast<size_t>(shape->k.back())];
  if (k % word != 0) return false;
  k /= word;
  const Expr first = stage::in_words(x, *shape, word, extents);
  for (int64_t i = 1; i < word; ++i)
    if (!(stage::in_words(x, *shape, word, extents, i) == first + Expr(i))) return false;
  if (!match_panel(floor_div(first, word, extents), extents, shape)) return false;
  shape->b_word = word;
  return true;
}

bool match_any_panel(const Expr& x, const Stage& stage, GemmShape* shape) {
  if (match_panel(x, stage.extents(), shape)) return true;
  constexpr int64_t kWords[] = {2, 4};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](int64_t word) { return match_word_panel(x, stage, word, shape); });
}

// Columns appear in B only, rows in A only, from the innermost digit outwards; the rest is batch.
void find_roles(const Stage& stage, const Expr& xa, const Expr& xb, GemmShape* shape) {
  const bool windows = stage.kind == hlo::StageKind::conv;
  for (int d = static_cast<int>(stage.out.size()) - 1; d >= 0; --d) {
    const int64_t extent = stage.out[static_cast<size_t>(d)].extent;
    bool in_a = xa.uses(d), in_b = xb.uses(d);
    if (in_b && !in_a && shape->n < 0) {
      shape->n = d;
      shape->n_extent = extent;
    } else if (in_a && !in_b && shape->m < 0) {
      shape->m = d;
      shape->m_extent = extent;
    } else if (in_a && !in_b && shape->y < 0 && windows) {
      shape->y = d;
      shape->y_extent = extent;
    } else {
      shape->batch.insert(shape->batch.begin(), d);
    }
  }
  for (size_t i = 0; i < stage.red.size(); ++i) {
    shape->k.push_back(static_cast<int>(stage.out.size() + i));
    shape->k_extent *= stage.red[i].extent;
  }
  // Panels of a product are packed in the product's order of k; of a convolution, in B's order.
  if (windows)
    std::stable_sort(shape->k.begin(), shape->k.end(), [&](int a, int b) {
      return std::abs(xb.factor_of(a)) > std::abs(xb.factor_of(b));
    });
}

const char* check_operands(const Stage& stage, const Expr& xa, const Expr& xb, GemmShape* shape) {
  if (shape->n < 0) return "no columns: a matrix times a vector";
  const bool conv = stage.kind == hlo::StageKind::conv;
  const bool groups = std::any_of(shape->batch.begin(), shape->batch.end(),
                                  [&](int d) { return xa.uses(d) && xb.uses(d); });
  if (conv && groups && shape->n_extent < 4) return "groups of few output features";
  if (!conv && shape->m_extent < 8 && xb.factor_of(shape->n) != 1 && affine_in(xb, shape->n))
    return "few rows, and columns of B that are not contiguous";
  for (int d : {shape->m, shape->y})
    if (d >= 0 && !affine_in(xa, d)) return "rows of A are not evenly spaced";
  bool even = affine_in(xb, shape->n);
  for (int k : shape->k) {
    if (!affine_in(xa, k)) return "k of A is not evenly spaced";
    even = even && affine_in(xb, k);
  }
  shape->b_n = xb.factor_of(shape->n);
  if (!even && !match_any_panel(xb, stage, shape)) return "B is neither evenly spaced nor packed";
  return nullptr;
}

}  // namespace

std::optional<Type> sum_type(Type type) {
  switch (type) {
    case Type::f16:
    case Type::bf16:
    case Type::f32:
      return Type::f32;
    case Type::f64:
    case Type::s32:
      return type;
    default:
      return std::nullopt;
  }
}

bool is_group(const GemmShape& shape, const Stage& stage, int digit) {
  auto uses = [&](int load) {
    return stage.loads[static_cast<size_t>(load)].coordinates[0].uses(digit);
  };
  return stage.kind == hlo::StageKind::conv && uses(shape.a_load) && uses(shape.b_load);
}

int shared_batch(const GemmShape& shape, const Stage& stage) {
  auto uses = [&](int load, int digit) {
    return stage.loads[static_cast<size_t>(load)].coordinates[0].uses(digit);
  };
  for (size_t i = shape.batch.size(); i-- > 0;)
    if (const int d = shape.batch[i]; uses(shape.a_load, d) && !uses(shape.b_load, d)) return d;
  return -1;
}

int64_t uses_across(const StageGraph& graph, int64_t word) {
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Stage& stage = graph.stages[i];
    if (stage.kind != hlo::StageKind::conv && stage.kind != hlo::StageKind::dot) continue;
    const GemmShapeOrNot match = match_gemm(graph, StageId(i));
    if (!match.decision) return 0;
    const GemmShape& shape = match.shape;
    const Load& load = stage.loads[static_cast<size_t>(shape.a_load)];
    const Expr& a = load.coordinates[0];
    constexpr int64_t kNear = 4;  // largest stride at which neighbours share a cache line
    int64_t row = 0;  // smallest stride of a row; a filter gradient's rows are in the batch
    for (int d = 0; d < static_cast<int>(stage.out.size()); ++d)
      if (const int64_t factor = std::abs(a.factor_of(d)); factor > 0 && d != shape.n)
        row = row == 0 ? factor : std::min(row, factor);
    if (row == 0 || row > kNear) return 0;
    const std::vector<int64_t> extents = stage.extents();
    int64_t depth = 1;  // of k without small windows (a filter gradient's window is the image)
    constexpr int64_t kSmallWindow = 7;
    for (int k : shape.k) {
      const int64_t extent = extents[static_cast<size_t>(k)];
      const bool along = std::abs(a.factor_of(k)) == 1 && !shape.window_over(k);
      // Words run along the last digit of k; the others are windows, or short.
      if (extent > 1 && along && (word == 1 || k == shape.k.back())) return 0;
      if (!shape.window_over(k) || extent > kSmallWindow) depth *= extent;
    }
    constexpr int64_t kDeep = 16;
    if (depth < (word > 1 ? word : kDeep)) return 0;
    const int64_t elems = graph.inputs[static_cast<size_t>(load.source.input)].shape.elems();
    return stage.out_elems() * shape.k_extent / std::max<int64_t>(1, elems);
  }
  return 0;
}

namespace {

// Matches everything but the layout of the operands.
GemmShapeOrNot match_roles(const StageGraph& graph, StageId dot, bool rounded = false) {
  const Stage& stage = graph.stage(dot);
  GemmShapeOrNot result;
  auto refuse = [&](const char* why) {
    result.decision = Decision::no("gemm-family", "{}: {}", stage.name, why);
    return result;
  };
  if (!sum_type(stage.values[0].type)) return refuse("no sums of this type");
  const std::optional<Sides> found = find_sides(stage, rounded);
  if (!found) return refuse("an operand is more than a load");
  const Sides sides = *found;
  if (stage.red.empty()) return refuse("nothing is contracted");
  const Load& a = stage.loads[sides.a];
  const Load& b = stage.loads[sides.b];
  if (a.source.input < 0 || b.source.input < 0 || !b.guards.empty())
    return refuse("an operand is not an input");
  if (a.coordinates[0].uses_runtime() || b.coordinates[0].uses_runtime())
    return refuse("an operand is read at a run-time offset");
  GemmShape& shape = result.shape;
  shape.type = *sum_type(stage.values[0].type);
  shape.a_load = sides.a;
  shape.b_load = sides.b;
  if (!match_windows(a.guards, stage, &shape))
    return refuse("the inner dimensions are not one window per dimension");
  find_roles(stage, a.coordinates[0], b.coordinates[0], &shape);
  return result;
}

}  // namespace

GemmShapeOrNot match_gemm(const StageGraph& graph, StageId dot, bool rounded) {
  GemmShapeOrNot result = match_roles(graph, dot, rounded);
  if (!result.decision) return result;
  const Stage& stage = graph.stage(dot);
  auto at = [&](int load) -> const Expr& {
    return stage.loads[static_cast<size_t>(load)].coordinates[0];
  };
  const char* why = stage.winograd > 0 ? "its filter is transformed"
                                       : check_operands(stage, at(result.shape.a_load),
                                                        at(result.shape.b_load), &result.shape);
  if (!why && result.shape.b_word > 1 && is_read_elsewhere(graph, dot, result.shape.b_load))
    why = "B, packed in words, is read elsewhere too";
  if (why) result.decision = Decision::no("gemm-family", "{}: {}", stage.name, why);
  return result;
}

Decision match_winograd(const StageGraph& graph, StageId conv, const target::Target& target,
                        WinogradShape* shape) {
  const GemmShapeOrNot match = match_roles(graph, conv);
  if (!match.decision) return match.decision;
  return match_winograd(match.shape, graph.stage(conv), target, shape);
}

namespace {

// Matches the link's rows to those of the previous value: digit by digit, or flattened into one
// digit (`counted`).
bool match_rows(const Stage& stage, const Stage& value, const Load& a, const Link& before,
                Link* link) {
  const GemmShape& rows = before.shape;
  GemmShape& shape = link->shape;
  std::vector<Expr> at;
  std::vector<int64_t> extents;
  std::vector<int> order;  // digits of the previous product, without its columns
  for (size_t d = 0; d < value.out.size(); ++d) {
    if (before.value_digits[d] == rows.n) continue;
    at.push_back(a.coordinates[d]);
    extents.push_back(value.out[d].extent);
    order.push_back(before.value_digits[d]);
  }
  std::vector<int> taken;
  for (size_t i = 0; i < at.size(); ++i) {
    int digit = -1;
    if (!at[i].is_digit(&digit) || digit >= static_cast<int>(stage.out.size()) ||
        stage.out[static_cast<size_t>(digit)].extent != extents[i] ||
        std::find(taken.begin(), taken.end(), digit) != taken.end())
      break;
    taken.push_back(digit);
  }
  if (taken.size() == at.size()) {
    shape.batch.assign(rows.batch.size(), -1);
    for (size_t i = 0; i < order.size(); ++i) {
      const auto batch = std::find(rows.batch.begin(), rows.batch.end(), order[i]);
      if (order[i] == rows.m)
        shape.m = taken[i];
      else if (order[i] == rows.y)
        shape.y = taken[i];
      else
        shape.batch[static_cast<size_t>(batch - rows.batch.begin())] = taken[i];
    }
    link->counted = before.counted;
    return true;
  }
  // Blocks of rows must stay contiguous: lines, then rows, must be the last digits.
  const size_t last = order.size();
  if (order[last - 1] != rows.m || (rows.y >= 0 && (last < 2 || order[last - 2] != rows.y)))
    return false;
  int64_t all = 1;
  for (int64_t extent : extents) all *= extent;
  for (size_t d = 0; d < stage.out.size(); ++d) {
    if (stage.out[d].extent != all) continue;
    index::Map map = index::reshape({all}, extents);
    const std::vector<int64_t> box = stage.extents();
    bool equal = true;
    for (size_t i = 0; i < at.size(); ++i)
      equal &= substitute(map.results[i], {Expr::digit(static_cast<int>(d))}, box) == at[i];
    if (!equal) continue;
    shape.m = static_cast<int>(d);
    link->counted = true;
    return true;
  }
  return false;
}

// Whether the link reduces over all columns of the previous value, with its digits in any order.
bool covers_columns(const Expr& x, const Stage& stage, int64_t columns) {
  if (!x.is_affine() || x.constant() != 0 || x.terms().size() != stage.red.size()) return false;
  std::vector<std::pair<int64_t, int64_t>> radix;
  for (const index::Term& term : x.terms()) {
    const int digit = term.atom.id - static_cast<int>(stage.out.size());
    if (term.atom.kind != index::Atom::Kind::digit || digit < 0) return false;
    radix.emplace_back(term.factor, stage.red[static_cast<size_t>(digit)].extent);
  }
  std::sort(radix.begin(), radix.end());
  int64_t next = 1;
  for (const auto& [factor, extent] : radix) {
    if (factor != next) return false;
    next *= extent;
  }
  return next == columns;
}

// Matches the right operand: one digit of columns, k evenly spaced.
const char* match_right(const Stage& stage, const Expr& xb, GemmShape* shape) {
  std::vector<int> rows = shape->batch;
  rows.insert(rows.end(), {shape->y, shape->m});
  for (int d = 0; d < static_cast<int>(stage.out.size()); ++d) {
    if (std::find(rows.begin(), rows.end(), d) != rows.end()) continue;
    if (shape->n >= 0 || !xb.uses(d)) return "its result has more digits than rows and columns";
    shape->n = d;
    shape->n_extent = stage.out[static_cast<size_t>(d)].extent;
  }
  if (shape->n < 0) return "no columns: a matrix times a vector";
  for (int d : {shape->m, shape->y})
    if (d >= 0 && xb.uses(d)) return "its right operand differs from row to row";
  auto extent = [&](int d) { return d < 0 ? 1 : stage.out[static_cast<size_t>(d)].extent; };
  shape->m_extent = extent(shape->m);
  shape->y_extent = extent(shape->y);
  for (size_t i = 0; i < stage.red.size(); ++i) {
    shape->k.push_back(static_cast<int>(stage.out.size() + i));
    shape->k_extent *= stage.red[i].extent;
  }
  if (stage.kind == hlo::StageKind::conv)
    std::stable_sort(shape->k.begin(), shape->k.end(), [&](int a, int b) {
      return std::abs(xb.factor_of(a)) > std::abs(xb.factor_of(b));
    });
  for (int k : shape->k)
    if (!affine_in(xb, k)) return "k of its right operand is not evenly spaced";
  shape->b_n = xb.factor_of(shape->n);
  if (!affine_in(xb, shape->n) && !match_panel(xb, stage.extents(), shape))
    return "columns of its right operand are neither evenly spaced nor packed";
  return nullptr;
}

}  // namespace

Decision match_link(const StageGraph& graph, const Link& before, Link* link) {
  const Stage& stage = graph.stage(link->joined[0]);
  const Stage& value = graph.stage(before.value);
  auto no = [&](const char* code, const char* why) {
    return Decision::no(code, "{} behind {}: {}", stage.name, value.name, why);
  };
  const bool conv = stage.kind == hlo::StageKind::conv;
  const std::optional<Sides> found = find_sides(stage);
  if (!sum_type(stage.values[0].type)) return no("gemm-family", "no sums of this type");
  if (stage.red.empty()) return no("gemm-family", "nothing is contracted");
  if (!found) return no("chain-operand", "an operand is more than a load");
  const Sides sides = *found;
  const Load& a = stage.loads[static_cast<size_t>(sides.a)];
  const Load& b = stage.loads[static_cast<size_t>(sides.b)];
  if (b.source.input < 0 || !b.guards.empty() || b.coordinates[0].uses_runtime())
    return no("chain-operand", "its right operand is not a plain input");
  if (a.source.input >= 0 || !(a.source.stage == before.value))
    return no("chain-operand", "its left operand is a different value");
  if (!a.guards.empty()) return no("chain-window", "its window leaves the input");
  GemmShape& shape = link->shape;
  shape.type = *sum_type(stage.values[0].type);
  shape.a_load = sides.a;
  shape.b_load = sides.b;
  if (!match_rows(stage, value, a, before, link))
    return conv ? no("chain-window", "a window or a stride") : no("chain-operand", "other rows");
  for (size_t d = 0; d < value.out.size(); ++d)
    if (before.value_digits[d] == before.shape.n &&
        !covers_columns(a.coordinates[d], stage, value.out[d].extent))
      return conv ? no("chain-window", "a window or groups") : no("chain-operand", "other columns");
  if (const char* why = match_right(stage, b.coordinates[0], &shape))
    return no("chain-operand", why);
  return Decision::yes();
}

}  // namespace heddle::schedule
