// Splits digits at the radix of a reshape, merges them for flattening, and splits reductions into
// partial results.
#include <algorithm>
#include <optional>

#include "stage/stage_builder.h"

namespace heddle::stage {

namespace {

struct Split {
  size_t digit;
  int64_t by;
};

// The innermost quotient or remainder of a single digit by a divisor of its extent.
std::optional<Split> find_split(const Expr& x, const std::vector<int64_t>& extents) {
  for (const index::Term& term : x.terms()) {
    if (!term.atom.inner) continue;
    if (auto inner = find_split(*term.atom.inner, extents)) return inner;
    int digit = 0;
    if (!term.atom.inner->is_digit(&digit)) continue;
    if (extents[digit] % term.atom.by == 0 && term.atom.by < extents[digit])
      return Split{static_cast<size_t>(digit), term.atom.by};
  }
  return std::nullopt;
}

std::optional<Split> find_split(const Stage& stage) {
  // The GEMM family needs m, n and k whole; it recognises panels by their quotients (gemm.h).
  if (stage.kind == hlo::StageKind::dot || stage.scan >= 0) return std::nullopt;
  // The same holds for the panels of a convolution's kernel, the last load; groups of features do
  // split, because they appear in the accesses of its input too.
  const bool conv = stage.kind == hlo::StageKind::conv;
  const std::vector<int64_t> extents = stage.extents();
  auto in_guards = [&](const std::vector<Guard>& guards) -> std::optional<Split> {
    for (const Guard& guard : guards)
      if (auto split = find_split(guard.value, extents)) return split;
    return std::nullopt;
  };
  for (const Load& load : stage.loads) {
    if (conv && &load == &stage.loads.back()) break;
    for (const Expr& coordinate : load.coordinates)
      if (auto split = find_split(coordinate, extents)) return split;
    if (auto split = in_guards(load.guards)) return split;
  }
  for (const Node& node : stage.nodes) {
    if (auto split = find_split(node.index, extents)) return split;
    if (auto split = in_guards(node.guards)) return split;
  }
  return std::nullopt;
}

void substitute_guards(std::vector<Guard>* guards, const std::vector<Expr>& with,
                       const std::vector<int64_t>& extents) {
  for (Guard& guard : *guards) guard.value = substitute(guard.value, with, extents);
}

}  // namespace

void substitute_stage(Stage* stage, const std::vector<Expr>& with) {
  const std::vector<int64_t> extents = stage->extents();
  for (Load& load : stage->loads) {
    for (Expr& x : load.coordinates) x = substitute(x, with, extents);
    substitute_guards(&load.guards, with, extents);
  }
  for (Node& node : stage->nodes) {
    node.index = substitute(node.index, with, extents);
    substitute_guards(&node.guards, with, extents);
  }
  stage->position = substitute(stage->position, with, extents);
}

namespace {

void split_digit(StageGraph* graph, size_t which, Split split) {
  Stage& stage = graph->stages[which];
  size_t out_count = stage.out.size();
  bool is_out = split.digit < out_count;
  std::vector<Digit>& list = is_out ? stage.out : stage.red;
  size_t position = is_out ? split.digit : split.digit - out_count;
  Digit digit = list[position];
  list[position] = {digit.name + "h", digit.extent / split.by};
  list.insert(list.begin() + position + 1, Digit{digit.name + "l", split.by});
  std::vector<Expr> with;
  size_t total = stage.out.size() + stage.red.size() - 1;
  for (size_t i = 0; i < total; ++i) {
    int shifted = static_cast<int>(i > split.digit ? i + 1 : i);
    with.push_back(i == split.digit ? Expr::digit(shifted) * split.by + Expr::digit(shifted + 1)
                                    : Expr::digit(shifted));
  }
  substitute_stage(&stage, with);
  if (!is_out) return;
  for (Stage& reader : graph->stages) {
    const std::vector<int64_t> extents = reader.extents();
    for (Load& load : reader.loads) {
      if (load.source.input >= 0 || load.source.stage.index() != which) continue;
      Expr x = load.coordinates[split.digit];
      load.coordinates[split.digit] = floor_div(x, split.by, extents);
      load.coordinates.insert(load.coordinates.begin() + split.digit + 1,
                              mod(x, split.by, extents));
    }
  }
}

}  // namespace

void split_digits(StageGraph* graph) {
  // Stages last to first, so that a reader's split reaches its producers; a bounded number of
  // rounds, since a producer's split may give its readers new quotients.
  for (int round = 0; round < 64; ++round) {
    bool changed = false;
    for (size_t i = graph->stages.size(); i-- > 0;) {
      while (auto split = find_split(graph->stages[i])) {
        split_digit(graph, i, *split);
        changed = true;
        if (graph->stages[i].extents().size() > 24) return;
      }
    }
    if (!changed) return;
  }
}

namespace {

// Returns `by` if x = high·by + low over two out digits of the reader, low of extent `by`; else 0.
int64_t radix_of(const Expr& x, const Stage& reader) {
  if (!x.is_affine() || x.constant() != 0 || x.terms().size() != 2) return 0;
  for (size_t low = 0; low < 2; ++low) {
    const index::Term &one = x.terms()[low], &other = x.terms()[1 - low];
    if (one.atom.kind != index::Atom::Kind::digit || other.atom.kind != index::Atom::Kind::digit ||
        one.atom.id >= static_cast<int>(reader.out.size()) ||
        other.atom.id >= static_cast<int>(reader.out.size()))
      return 0;
    const int64_t extent = reader.out[static_cast<size_t>(one.atom.id)].extent;
    if (one.factor == 1 && other.factor == extent) return extent;
  }
  return 0;
}

// Splits an out digit and the corresponding digits of its producers.
void split_upwards(StageGraph* graph, size_t stage, size_t digit, int64_t by) {
  if (graph->stages[stage].out[digit].extent % by != 0) return;
  split_digit(graph, stage, {digit, by});
  const Expr both =
      Expr::digit(static_cast<int>(digit)) * by + Expr::digit(static_cast<int>(digit) + 1);
  const size_t loads = graph->stages[stage].loads.size();
  for (size_t l = 0; l < loads; ++l) {
    const Load load = graph->stages[stage].loads[l];
    if (load.source.input >= 0) continue;
    for (size_t d = 0; d < load.coordinates.size(); ++d) {
      if (!(load.coordinates[d] == both)) continue;
      split_upwards(graph, load.source.stage.index(), d, by);
      break;
    }
  }
}

}  // namespace

namespace {

bool uses(const Load& load, int digit) {
  return std::any_of(load.coordinates.begin(), load.coordinates.end(),
                     [&](const Expr& x) { return x.uses(digit); });
}

bool is_dot(const Stage& stage) { return stage.kind == hlo::StageKind::dot; }

// Whether both operands of the product have the digit.
bool is_batch(const Stage& dot, int digit) {
  return dot.loads.size() == 2 && uses(dot.loads[0], digit) && uses(dot.loads[1], digit);
}

// Splits a batch digit of the product that its producer has as two digits.
bool split_batch(StageGraph* graph, size_t dot) {
  const Stage& stage = graph->stages[dot];
  const std::vector<int64_t> extents = stage.extents();
  for (const Load& load : stage.loads) {
    if (load.source.input >= 0) continue;
    for (const Expr& x : load.coordinates) {
      const std::optional<Split> split = find_split(x, extents);
      if (!split || split->digit >= stage.out.size() ||
          !is_batch(stage, static_cast<int>(split->digit)))
        continue;
      split_digit(graph, dot, *split);
      return true;
    }
  }
  return false;
}

// Splits a digit that the reader has as two: of any operand of a product, and of a product the
// batch and, if they are `reduced` later, the rows.
bool split_read(StageGraph* graph, size_t reader, bool reduced) {
  for (const Load& load : graph->stages[reader].loads) {
    if (load.source.input >= 0) continue;
    const size_t source = load.source.stage.index();
    const Stage& from = graph->stages[source];
    for (size_t d = 0; d < load.coordinates.size(); ++d) {
      const int64_t by = radix_of(load.coordinates[d], graph->stages[reader]);
      if (by == 0 || from.out[d].extent % by != 0 || from.out[d].extent == by) continue;
      const int digit = static_cast<int>(d);
      const bool rows = is_dot(from) && from.loads.size() == 2 && uses(from.loads[0], digit);
      if (!is_dot(graph->stages[reader]) &&
          !(is_dot(from) && (is_batch(from, digit) || (reduced && rows))))
        continue;
      split_upwards(graph, source, d, by);
      return true;
    }
  }
  return false;
}

}  // namespace

void split_rows(StageGraph* graph) {
  std::vector<bool> reduced(graph->stages.size(), false);  // or feeds a reduction
  for (size_t i = graph->stages.size(); i-- > 0;) {
    const Stage& stage = graph->stages[i];
    reduced[i] = reduced[i] || stage.kind == hlo::StageKind::reduce;
    for (const Load& load : stage.loads)
      if (reduced[i] && !is_dot(stage) && load.source.input < 0)
        reduced[load.source.stage.index()] = true;
  }
  for (int round = 0; round < 16; ++round) {
    bool changed = false;
    for (size_t i = 0; i < graph->stages.size(); ++i) {
      changed |= is_dot(graph->stages[i]) && split_batch(graph, i);
      changed |= split_read(graph, i, reduced[i]);
    }
    if (!changed) return;
  }
}

namespace {

// Whether digits a and a+1 act as one digit in every access of every stage.
bool can_merge(const StageGraph& graph, int a) {
  for (const Stage& stage : graph.stages) {
    int64_t inner = stage.out[a + 1].extent;
    auto merged = [&](const Expr& x) {
      int64_t low = x.factor_of(a + 1), high = x.factor_of(a);
      Expr rest = x - Expr::digit(a) * high - Expr::digit(a + 1) * low;
      return high == low * inner && !rest.uses(a) && !rest.uses(a + 1);
    };
    for (const Load& load : stage.loads) {
      if (!std::all_of(load.guards.begin(), load.guards.end(),
                       [&](const Guard& guard) { return merged(guard.value); }))
        return false;
      if (load.source.input >= 0) {
        if (!merged(load.coordinates[0])) return false;
        continue;
      }
      for (size_t i = 0; i < load.coordinates.size(); ++i)
        if (!(load.coordinates[i] == Expr::digit(static_cast<int>(i)))) return false;
    }
    for (const Node& node : stage.nodes) {
      if (!merged(node.index)) return false;
      for (const Guard& guard : node.guards)
        if (!merged(guard.value)) return false;
    }
    if (!merged(stage.position)) return false;
  }
  return true;
}

void merge(StageGraph* graph, int a) {
  for (Stage& stage : graph->stages) {
    int64_t inner = stage.out[a + 1].extent;
    std::vector<Expr> with;
    for (int i = 0; i < static_cast<int>(stage.out.size()); ++i) {
      // The merged digit is a·inner + (a+1): it takes the place of a+1.
      if (i == a)
        with.push_back(Expr(0));
      else
        with.push_back(Expr::digit(i > a ? i - 1 : i));
    }
    stage.out[a].extent *= inner;
    stage.out.erase(stage.out.begin() + a + 1);
    substitute_stage(&stage, with);
    for (Load& load : stage.loads)
      if (load.source.input < 0) load.coordinates.erase(load.coordinates.begin() + a);
  }
}

// Merges the last two digits where each element is repeated 2, 4 or 8 times (a nearest resize):
// lanes over both digits read elements once and move them, where lanes over one would be stored one
// by one.
void join_repeats(Stage* stage) {
  const int last = static_cast<int>(stage->out.size()) - 1;
  if (last < 1 || stage->values.size() != 1 || !stage->red.empty()) return;
  const int64_t times = stage->out[last].extent, before = stage->out[last - 1].extent;
  if (times < 2 || times > 8 || (times & (times - 1)) != 0 || before * times < 16) return;
  bool moves = false;
  for (const Load& load : stage->loads) {
    if (load.source.input < 0 || !load.guards.empty()) return;
    const Expr& x = load.coordinates[0];
    if (x.uses_runtime() || x.uses(last) || (x - Expr::digit(last - 1)).uses(last - 1)) return;
    moves = true;
  }
  for (const Node& node : stage->nodes)
    if (node.index.uses(last) || node.index.uses(last - 1) || !node.guards.empty()) return;
  Expr position = stage->position - Expr::digit(last - 1) * times - Expr::digit(last);
  if (!moves || position.uses(last) || position.uses(last - 1)) return;
  stage->out[last - 1].extent *= times;
  stage->out.pop_back();
  std::vector<Expr> with;
  for (int d = 0; d + 1 < last; ++d) with.push_back(Expr::digit(d));
  with.push_back(floor_div(Expr::digit(last - 1), times, stage->extents()));
  with.push_back(mod(Expr::digit(last - 1), times, stage->extents()));
  substitute_stage(stage, with);
  stage->position = position + Expr::digit(last - 1);
}

}  // namespace

void flatten_digits(StageGraph* graph) {
  if (graph->stages.empty()) return;
  for (const Stage& stage : graph->stages) {
    if (stage.kind != hlo::StageKind::map || !(stage.out == graph->stages[0].out)) return;
  }
  for (int a = static_cast<int>(graph->stages[0].out.size()) - 2; a >= 0; --a)
    if (can_merge(*graph, a)) merge(graph, a);
  if (graph->stages.size() == 1) join_repeats(&graph->stages[0]);
}

// Inserts a stage after `at` and redirects the readers of `at` to it; later stages move up by one.
static void insert_behind(size_t at, Stage stage, StageGraph* graph) {
  graph->stages.insert(graph->stages.begin() + static_cast<long>(at) + 1, std::move(stage));
  for (size_t i = at + 2; i < graph->stages.size(); ++i)
    for (Load& load : graph->stages[i].loads)
      if (load.source.input < 0 && load.source.stage.index() >= at)
        load.source.stage = StageId(load.source.stage.index() + 1);
  for (Output& output : graph->outputs)
    if (output.stage.index() >= at) output.stage = StageId(output.stage.index() + 1);
}

StageGraph split_reduction(const StageGraph& graph, StageId stage, int64_t parts) {
  StageGraph result = graph;
  const size_t at = stage.index();
  Stage partial = result.stages[at];
  HEDDLE_CHECK(!partial.red.empty() && partial.red[0].extent % parts == 0);
  // Digit r becomes (p, r'); p becomes the first out digit.
  size_t out_count = partial.out.size();
  int64_t rest = partial.red[0].extent / parts;
  std::vector<Expr> with;
  size_t total = out_count + partial.red.size();
  for (size_t i = 0; i < total; ++i) {
    int shifted = static_cast<int>(i + 1);
    with.push_back(i == out_count ? Expr::digit(0) * rest + Expr::digit(shifted)
                                  : Expr::digit(shifted));
  }
  partial.red[0].extent = rest;
  partial.out.insert(partial.out.begin(), Digit{"p", parts});
  partial.name += ".partial";
  Stage combine;
  combine.name = result.stages[at].name;
  combine.kind = hlo::StageKind::reduce;
  combine.instr = partial.instr;
  combine.out = result.stages[at].out;
  combine.red = {{"p", parts}};
  combine.combine = partial.combine;
  combine.position = result.stages[at].position;
  substitute_stage(&partial, with);
  partial.position =
      index::linearize(index::identity(partial.out_extents()).results, partial.out_extents());
  for (size_t v = 0; v < partial.values.size(); ++v) {
    Value value = result.stages[at].values[v];
    Load load;
    load.source = {-1, StageId(at), static_cast<int>(v)};
    load.coordinates.push_back(Expr::digit(static_cast<int>(out_count)));
    for (size_t i = 0; i < out_count; ++i)
      load.coordinates.push_back(Expr::digit(static_cast<int>(i)));
    combine.loads.push_back(std::move(load));
    Node node;
    node.kind = Node::Kind::load;
    node.type = value.type;
    node.load = static_cast<int>(v);
    combine.nodes.push_back(node);
    value.result = static_cast<int>(combine.nodes.size() - 1);
    if (value.init >= 0) {
      HEDDLE_CHECK(partial.nodes[value.init].kind == Node::Kind::constant);
      combine.nodes.push_back(partial.nodes[value.init]);
      value.init = static_cast<int>(combine.nodes.size() - 1);
    }
    combine.values.push_back(value);
    partial.values[v].output = -1;
  }
  result.stages[at] = std::move(partial);
  insert_behind(at, std::move(combine), &result);
  return result;
}

}  // namespace heddle::stage
