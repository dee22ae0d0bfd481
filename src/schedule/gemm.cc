#include "schedule/gemm.h"

#include <algorithm>
#include <limits>

namespace heddle::schedule {

using index::Expr;

namespace {

struct Sides {
  int a = -1, b = -1;  // loads
};

// multiply(load, load) with nothing else in the body.
bool find_sides(const Stage& stage, Sides* sides) {
  if (stage.values.size() != 1 || stage.values[0].init >= 0) return false;
  const Node& product = stage.nodes[stage.values[0].result];
  if (product.kind != Node::Kind::op || product.opcode != hlo::Opcode::multiply) return false;
  const Node& left = stage.nodes[product.operands[0]];
  const Node& right = stage.nodes[product.operands[1]];
  if (left.kind != Node::Kind::load || right.kind != Node::Kind::load) return false;
  sides->a = left.load;
  sides->b = right.load;
  return true;
}

bool affine_in(const Expr& x, int digit) {
  Expr rest = x - Expr::digit(digit) * x.factor_of(digit);
  return !rest.uses(digit);
}

// Elements of K between neighbours of each reduced digit.
std::vector<int64_t> k_strides(const Stage& stage) {
  std::vector<int64_t> strides(stage.red.size(), 1);
  for (size_t i = stage.red.size(); i-- > 1;) strides[i - 1] = strides[i] * stage.red[i].extent;
  return strides;
}

// S·(n floordiv nr) + (n mod nr) + nr·k: a packed panel.
bool match_panel(const Expr& x, const Stage& stage, GemmShape* shape) {
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
  if (!width || !remainder || x.factor_of(shape->n) != 0) return false;
  std::vector<int64_t> strides = k_strides(stage);
  for (size_t i = 0; i < strides.size(); ++i)
    if (x.factor_of(shape->k[i]) != width * strides[i]) return false;
  shape->b_panel = width;
  shape->b_panel_stride = stride;
  shape->b_n = 1;
  return true;
}

}  // namespace

GemmShapeOrNot match_gemm(const StageGraph& graph, StageId dot) {
  const Stage& stage = graph.stage(dot);
  GemmShapeOrNot result;
  auto refuse = [&](const char* why) {
    result.decision = Decision::no("gemm-family", "{}: {}", stage.name, why);
    return result;
  };
  Sides sides;
  if (stage.values[0].type != Type::f32) return refuse("only f32 has a family here");
  if (!find_sides(stage, &sides)) return refuse("an operand is more than a load");
  if (stage.red.empty()) return refuse("nothing is contracted");
  const Load& a = stage.loads[sides.a];
  const Load& b = stage.loads[sides.b];
  if (a.source.input < 0 || b.source.input < 0 || !a.guards.empty() || !b.guards.empty())
    return refuse("an operand is not an input");
  GemmShape& shape = result.shape;
  shape.a_load = sides.a;
  shape.b_load = sides.b;
  for (size_t i = 0; i < stage.red.size(); ++i) {
    shape.k.push_back(static_cast<int>(stage.out.size() + i));
    shape.k_extent *= stage.red[i].extent;
  }
  const Expr& xa = a.coordinates[0];
  const Expr& xb = b.coordinates[0];
  for (int d = static_cast<int>(stage.out.size()) - 1; d >= 0; --d) {
    bool in_a = xa.uses(d), in_b = xb.uses(d);
    if (in_b && !in_a && shape.n < 0) {
      shape.n = d;
      shape.n_extent = stage.out[d].extent;
    } else if (in_a && !in_b && shape.m < 0) {
      shape.m = d;
      shape.m_extent = stage.out[d].extent;
    } else {
      shape.batch.insert(shape.batch.begin(), d);
    }
  }
  if (shape.n < 0) return refuse("no columns: a matrix times a vector");
  if (shape.m_extent < 8 && xb.factor_of(shape.n) != 1 && affine_in(xb, shape.n))
    return refuse("few rows, and columns of B that are not contiguous");
  if (shape.m >= 0 && !affine_in(xa, shape.m)) return refuse("rows of A are not evenly spaced");
  for (int k : shape.k) {
    if (!affine_in(xa, k)) return refuse("k of A is not evenly spaced");
    if (!affine_in(xb, k)) return refuse("k of B is not evenly spaced");
  }
  shape.b_n = xb.factor_of(shape.n);
  if (!affine_in(xb, shape.n) && !match_panel(xb, stage, &shape))
    return refuse("columns of B are neither evenly spaced nor packed");
  return result;
}

namespace {

// x = Σ factor·t over the reader's digits, a mixed-radix number that fills [0, extent): then each
// t is a quotient and remainder of x.
bool invert(const Expr& x, const Stage& reader, int64_t extent, const Expr& value,
            const std::vector<int64_t>& box, std::vector<Expr>* digits, std::vector<bool>* known) {
  if (!x.is_affine() || x.constant() != 0) return false;
  std::vector<std::pair<int64_t, int>> radix;
  for (const index::Term& term : x.terms()) {
    if (term.factor <= 0 || term.atom.kind != index::Atom::Kind::digit) return false;
    radix.emplace_back(term.factor, term.atom.id);
  }
  std::sort(radix.begin(), radix.end());
  int64_t next = 1;
  for (const auto& [factor, digit] : radix) {
    if (factor != next || digit >= static_cast<int>(reader.out.size())) return false;
    int64_t n = reader.out[digit].extent;
    (*digits)[digit] = mod(floor_div(value, factor, box), n, box);
    (*known)[digit] = true;
    next *= n;
  }
  return next == extent;
}

}  // namespace

Decision invert_epilogue(const StageGraph& graph, StageId dot,
                         std::vector<std::vector<Expr>>* digits) {
  const Stage& from = graph.stage(dot);
  const std::vector<int64_t> box = from.out_extents();
  digits->assign(graph.stages.size(), {});
  (*digits)[dot.index()] = index::identity(box).results;
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    if (i == dot.index()) continue;
    const Stage& stage = graph.stages[i];
    std::vector<Expr> mine(stage.out.size());
    std::vector<bool> known(stage.out.size(), false);
    bool reads = false;
    for (const Load& load : stage.loads) {
      if (load.source.input >= 0) continue;
      size_t source = load.source.stage.index();
      const Stage& other = graph.stages[source];
      if (!load.guards.empty())
        return Decision::no("gemm-epilogue", "{} reads {} in part", stage.name, other.name);
      for (size_t d = 0; d < load.coordinates.size(); ++d) {
        if (!invert(load.coordinates[d], stage, other.out[d].extent, (*digits)[source][d], box,
                    &mine, &known))
          return Decision::no("gemm-epilogue", "{} reads {} at {}", stage.name, other.name,
                              index::to_string(load.coordinates[d]));
      }
      reads = true;
    }
    if (!reads || std::find(known.begin(), known.end(), false) != known.end())
      return Decision::no("gemm-epilogue", "{} is not element for element with {}", stage.name,
                          from.name);
    (*digits)[i] = std::move(mine);
  }
  return Decision::yes();
}

double gemm_cycles(const Gemm& gemm, int64_t m, int64_t n, int64_t k,
                   const target::Target& target) {
  auto tile = [&](double rows, double vectors) {
    double fma = rows * vectors / std::max(1, target.fma_per_cycle);
    double cycles = std::max({fma, 4.0, (rows + vectors) / 2});
    double blocks = gemm.kc > 0 ? static_cast<double>((k + gemm.kc - 1) / gemm.kc) : 1;
    return static_cast<double>(k) * cycles + blocks * (20 + 1.5 * rows * vectors);
  };
  int64_t width = int64_t{gemm.nv} * gemm.lanes;
  int64_t tiles = (m + gemm.mr - 1) / gemm.mr;
  int64_t low = m / tiles, high_count = m - low * tiles;
  auto column = [&](double vectors) {
    return static_cast<double>(high_count) * tile(static_cast<double>(low + 1), vectors) +
           static_cast<double>(tiles - high_count) * tile(static_cast<double>(low), vectors);
  };
  int64_t full = n / width, rest = n % width;
  double total = static_cast<double>(full) * column(gemm.nv);
  if (rest) total += column(static_cast<double>((rest + gemm.lanes - 1) / gemm.lanes));
  return total;
}

Gemm choose_gemm(int64_t m, int64_t n, int64_t k, bool b_constant,
                 const target::Target& target, int nv) {
  struct Tile {
    int mr, nv;
  };
  static constexpr Tile kWide[] = {{8, 3}, {14, 2}, {12, 2}, {6, 4}, {9, 3}, {10, 2}, {7, 3}};
  static constexpr Tile kNarrow[] = {{6, 2}, {4, 3}, {5, 2}, {12, 1}};
  Gemm best;
  best.lanes = target.lanes(Type::f32);
  bool wide = target.vector_registers >= 32;
  best.ku = 4;
  if (m == 1) {
    best.mr = 1;
    best.nv = nv ? nv : static_cast<int>(std::clamp<int64_t>(n / best.lanes, 1, wide ? 8 : 6));
  } else {
    double least = std::numeric_limits<double>::max();
    Gemm candidate = best;
    auto consider = [&](Tile tile) {
      if (nv && tile.nv != nv) return;
      candidate.mr = static_cast<int>(std::min<int64_t>(tile.mr, m));
      candidate.nv = tile.nv;
      double cycles = gemm_cycles(candidate, m, n, k, target);
      if (cycles >= least) return;
      least = cycles;
      best.mr = candidate.mr;
      best.nv = candidate.nv;
    };
    if (wide) {
      for (Tile tile : kWide) consider(tile);
    } else {
      for (Tile tile : kNarrow) consider(tile);
    }
    if (least == std::numeric_limits<double>::max()) {  // panels of an unusual width
      int registers = target.vector_registers;
      consider({std::max(1, (registers - 1 - nv) / std::max(nv, 1)), nv});
    }
  }
  best.kc = k;
  // Up to 512 rows stay one block; more are cut so that a block of A stays in the second cache.
  int64_t blocks = m <= 512 ? 1 : (m + 255) / 256;
  best.m_block = (m + blocks - 1) / blocks;
  int64_t tiles = (best.m_block + best.mr - 1) / best.mr;
  // The next panel is fetched while this one is used, if B does not stay in the cache anyway.
  if (b_constant && k * n * 4 >= (512 << 10))
    best.prefetch = static_cast<int>((int64_t{best.nv} * best.ku + tiles - 1) / tiles);
  return best;
}

std::string to_string(const Gemm& gemm) {
  return fmt::format("gemm {}x{} lanes {} kc {} ku {} prefetch {} rows {}{}", gemm.mr, gemm.nv,
                     gemm.lanes, gemm.kc, gemm.ku, gemm.prefetch, gemm.m_block,
                     gemm.copy_b ? " copy_b" : "");
}

}  // namespace heddle::schedule
