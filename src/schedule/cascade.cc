// Reductions that read another reduction of the same row: the sum of exp(x - max x) in softmax and
// log-sum-exp. A row too long for the second cache is processed in strips: a strip's maximum, and
// its sum relative to that maximum, are computed while the strip is in cache; afterwards m = max
// m_p and sum = sum_p sum_p exp(m_p - m). So a row is read from memory once.
#include "schedule/phases.h"
#include "schedule/place_rows.h"
#include "schedule/strategy.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "stage/partials.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// A sum over exp(element - its row's maximum).
struct Pair {
  size_t maximum = 0, sum = 0;  // stages
  size_t load = 0;              // the sum's load of the maximum
};

bool combines_by(const Stage& stage, hlo::Opcode opcode) {
  return stage.kind == hlo::StageKind::reduce && stage.combine && stage.values.size() == 1 &&
         stage.red.size() == 1 && stage.values[0].type == Type::f32 &&
         stage.combine->root()->is(opcode) && starts_neutral(stage);
}

// Whether both stages compute the same value of the same digits.
bool is_same(const Stage& a, int x, const Stage& b, int y) {
  const Node &one = a.nodes[static_cast<size_t>(x)], &other = b.nodes[static_cast<size_t>(y)];
  if (one.kind != other.kind || one.type != other.type || one.bits != other.bits ||
      one.opcode != other.opcode || one.fast != other.fast || !(one.index == other.index) ||
      !(one.guards == other.guards) || one.operands.size() != other.operands.size())
    return false;
  if (one.kind == Node::Kind::load)
    return a.loads[static_cast<size_t>(one.load)] == b.loads[static_cast<size_t>(other.load)];
  // Operators with attributes must be the same instruction.
  if (one.instr != other.instr &&
      (one.opcode == hlo::Opcode::compare || one.opcode == hlo::Opcode::reduce_precision))
    return false;
  for (size_t i = 0; i < one.operands.size(); ++i)
    if (!is_same(a, one.operands[i], b, other.operands[i])) return false;
  return true;
}

bool reads_at(const Stage& stage, int number, size_t load) {
  const Node& node = stage.nodes[static_cast<size_t>(number)];
  if (node.kind == Node::Kind::load) return static_cast<size_t>(node.load) == load;
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](int operand) { return reads_at(stage, operand, load); });
}

std::optional<Pair> match(const StageGraph& graph, size_t number) {
  const Stage& sum = graph.stages[number];
  if (!combines_by(sum, hlo::Opcode::add)) return std::nullopt;
  const Node& power = sum.nodes[static_cast<size_t>(sum.values[0].result)];
  if (power.kind != Node::Kind::op || power.opcode != hlo::Opcode::exponential || !power.fast)
    return std::nullopt;
  const Node& shifted = sum.nodes[static_cast<size_t>(power.operands[0])];
  if (shifted.kind != Node::Kind::op || shifted.opcode != hlo::Opcode::subtract)
    return std::nullopt;
  const Node& top = sum.nodes[static_cast<size_t>(shifted.operands[1])];
  if (top.kind != Node::Kind::load) return std::nullopt;
  const Load& load = sum.loads[static_cast<size_t>(top.load)];
  if (load.source.input >= 0 || !load.guards.empty()) return std::nullopt;
  const Stage& maximum = graph.stage(load.source.stage);
  if (!combines_by(maximum, hlo::Opcode::maximum) || maximum.extents() != sum.extents() ||
      maximum.out.size() != sum.out.size())
    return std::nullopt;
  for (size_t d = 0; d < load.coordinates.size(); ++d)
    if (!(load.coordinates[d] == Expr::digit(static_cast<int>(d)))) return std::nullopt;
  const auto at = static_cast<size_t>(top.load);
  if (!is_same(sum, shifted.operands[0], maximum, maximum.values[0].result) ||
      reads_at(sum, shifted.operands[0], at))
    return std::nullopt;
  return Pair{load.source.stage.index(), number, at};
}

// Equal strips of a row that fit in the first cache; nullopt if there are none or the second cache
// has room for the row.
std::optional<stage::Strips> strips_of(const Stage& stage, const target::Target& target) {
  if (target.caches.size() < 2) return std::nullopt;
  const int64_t extent = stage.red[0].extent;
  constexpr int64_t kBytes = 4;
  if (extent * kBytes <= target.caches[1].bytes / 4) return std::nullopt;
  const int64_t most = target.caches[0].bytes * 2 / 3 / kBytes, least = most / 8;
  const int64_t lanes = 4 * int64_t{target.lanes(Type::f32)};
  std::optional<stage::Strips> best;
  for (int64_t parts = std::max<int64_t>(2, extent / most); extent / parts >= least; ++parts) {
    if (extent % parts != 0 || extent / parts > most) continue;
    if (!best) best = stage::Strips{extent, extent / parts, parts};
    if (extent / parts % lanes == 0) return stage::Strips{extent, extent / parts, parts};
  }
  return best;
}

int add(Stage* stage, Node node) {
  stage->nodes.push_back(std::move(node));
  return static_cast<int>(stage->nodes.size() - 1);
}

int add_op(Stage* stage, hlo::Opcode opcode, std::vector<int> operands, bool fast = false) {
  Node node;
  node.kind = Node::Kind::op;
  node.opcode = opcode;
  node.operands = std::move(operands);
  node.fast = fast;
  return add(stage, std::move(node));
}

int add_load(Stage* stage, StageId from, std::vector<Expr> coordinates) {
  stage->loads.push_back({{-1, from, 0}, std::move(coordinates), {}});
  Node node;
  node.kind = Node::Kind::load;
  node.load = static_cast<int>(stage->loads.size() - 1);
  return add(stage, std::move(node));
}

// A strip of -inf alone has a sum of 0, not NaN.
int add_bounded(Stage* stage, int maximum) {
  Node least;
  least.bits = 0xff7fffff;  // the least finite number
  const int bound = add(stage, std::move(least));
  return add_op(stage, hlo::Opcode::maximum, {maximum, bound});
}

class Striper {
 public:
  Striper(const StageGraph& graph, const target::Target& target) : from_(graph), target_(target) {}

  Cascade run() {
    std::map<size_t, std::pair<Pair, stage::Strips>> pairs;  // by maximum
    std::set<size_t> sums;
    for (size_t i = 0; i < from_.stages.size(); ++i) {
      const std::optional<Pair> pair = match(from_, i);
      if (!pair || pairs.count(pair->maximum) > 0) continue;
      const std::optional<stage::Strips> strips = strips_of(from_.stages[i], target_);
      if (!strips) continue;
      pairs.emplace(pair->maximum, std::pair(*pair, *strips));
      sums.insert(i);
    }
    if (pairs.empty()) return {from_, {}};
    result_.graph.name = from_.name;
    result_.graph.inputs = from_.inputs;
    result_.graph.outputs = from_.outputs;
    result_.graph.rewrites = from_.rewrites;
    result_.graph.rewrites.emplace_back(
        "fast_forms: long rows of softmax are summed in tiles (docs/numerics.md#fast-forms)");
    moved_.resize(from_.stages.size());
    for (size_t i = 0; i < from_.stages.size(); ++i) {
      if (sums.count(i) > 0) continue;
      if (pairs.count(i) > 0)
        stripe(pairs.at(i).first, pairs.at(i).second);
      else
        moved_[i] = append(from_.stages[i]);
    }
    for (Output& output : result_.graph.outputs) output.stage = moved_[output.stage.index()];
    return std::move(result_);
  }

 private:
  StageId append(Stage stage) {
    for (Load& load : stage.loads)
      if (load.source.input < 0) load.source.stage = moved_[load.source.stage.index()];
    return push(std::move(stage));
  }

  StageId push(Stage stage) {
    result_.graph.stages.push_back(std::move(stage));
    return StageId(result_.graph.stages.size() - 1);
  }

  Stage partial(const Stage& stage, const stage::Strips& strips) const {
    const uint64_t neutral = *neutral_bits(stage, Type::f32);
    return partial_sum(stage, static_cast<int>(stage.out.size()), strips, Type::f32, neutral);
  }

  void stripe(const Pair& pair, const stage::Strips& strips) {
    const Stage& maximum = from_.stages[pair.maximum];
    const Stage& sum = from_.stages[pair.sum];
    const StageId top = append(partial(maximum, strips));
    // The sum of a strip, relative to the strip's maximum.
    Stage part = partial(sum, strips);
    for (Load& load : part.loads)
      if (load.source.input < 0 && !(load.source.stage == StageId(pair.maximum)))
        load.source.stage = moved_[load.source.stage.index()];
    const auto out = static_cast<int>(part.out.size());
    std::vector<Expr> here;
    for (int d = 0; d < out; ++d) here.push_back(Expr::digit(d));
    part.loads[pair.load] = {{-1, top, 0}, here, {}};
    Node& power = part.nodes[static_cast<size_t>(part.values[0].result)];
    const auto shifted = static_cast<size_t>(power.operands[0]);
    const int bounded = add_bounded(&part, part.nodes[shifted].operands[1]);
    part.nodes[shifted].operands[1] = bounded;
    order_nodes(&part);
    const StageId weight = push(std::move(part));
    result_.striped.insert(result_.striped.end(), {top, weight});
    // Combines all strips.
    Stage all = combining(maximum, Type::f32, {"p", strips.parts});
    all.loads[0].source.stage = top;
    moved_[pair.maximum] = push(std::move(all));
    Stage total = combining(sum, Type::f32, {"p", strips.parts});
    total.loads[0].source.stage = weight;
    const int own = add_load(&total, top, total.loads[0].coordinates);
    std::vector<Expr> row;
    for (int d = 0; d + 1 < out; ++d) row.push_back(Expr::digit(d));
    const int whole = add_load(&total, moved_[pair.maximum], row);
    const int below = add_op(&total, hlo::Opcode::subtract, {add_bounded(&total, own), whole});
    const int factor = add_op(&total, hlo::Opcode::exponential, {below}, true);
    total.values[0].result = add_op(&total, hlo::Opcode::multiply, {0, factor});
    moved_[pair.sum] = push(std::move(total));
  }

  // Restores the order of nodes: operands before their readers.
  static void order_nodes(Stage* stage) {
    std::vector<int> place(stage->nodes.size(), -1);
    std::vector<Node> ordered;
    std::function<int(int)> visit = [&](int number) {
      int& at = place[static_cast<size_t>(number)];
      if (at >= 0) return at;
      Node node = stage->nodes[static_cast<size_t>(number)];
      for (int& operand : node.operands) operand = visit(operand);
      ordered.push_back(std::move(node));
      return at = static_cast<int>(ordered.size() - 1);
    };
    for (size_t i = 0; i < stage->nodes.size(); ++i) visit(static_cast<int>(i));
    stage->nodes = std::move(ordered);
    for (Value& value : stage->values) {
      value.result = place[static_cast<size_t>(value.result)];
      if (value.init >= 0) value.init = place[static_cast<size_t>(value.init)];
    }
  }

  const StageGraph& from_;
  const target::Target& target_;
  Cascade result_;
  std::vector<StageId> moved_;
};

}  // namespace

Cascade cascade(const StageGraph& graph, const target::Target& target) {
  return Striper(graph, target).run();
}

bool cascade_applies(const Problem& problem, const PlacedFusion&) {
  return may_be_rows(problem) &&
         std::any_of(problem.graph.stages.begin(), problem.graph.stages.end(),
                     [](const Stage& stage) { return combines_by(stage, hlo::Opcode::add); });
}

PlacedFusion place_cascade(const Problem& problem) {
  PlacedFusion result;
  Cascade strips = cascade(problem.row_graph(), problem.target);
  if (strips.striped.empty()) {
    result.decision = Decision::no(kDoesNotApply, "no row with a sum of exponentials is long");
    return result;
  }
  result = place_rows(std::move(strips.graph), problem.target, std::move(strips.striped));
  if (result.decision && result.schedule.count_tasks() < 2 * problem.target.cores)
    result.decision = Decision::no("few-tasks", "{} tasks", result.schedule.count_tasks());
  return result;
}

}  // namespace heddle::schedule
