#include "schedule/fast_forms.h"

#include <algorithm>

#include "schedule/lane_digit.h"
#include "schedule/phases.h"

namespace heddle::schedule {

namespace {

constexpr int64_t kLeastRow = 64;

bool is_one(const Node& node) {
  return node.kind == Node::Kind::constant && tensor::is_float(node.type) &&
         tensor::float_from_bits(node.type, node.bits) == 1.0;
}

// Whether the node loads the result of a maximum reduction.
bool is_row_maximum(const StageGraph& graph, const Stage& stage, const Node& node) {
  if (node.kind != Node::Kind::load) return false;
  const Source& source = stage.loads[node.load].source;
  if (source.input >= 0) return false;
  const hlo::Computation* combine = graph.stage(source.stage).combine;
  return combine && combine->root()->is(hlo::Opcode::maximum);
}

// The node that computes a value, traced through loads of other stages; null if it is an input or a
// reduction's result.
const Node* maker(const StageGraph& graph, const Stage& stage, int number) {
  const Node* node = &stage.nodes[number];
  const Stage* at = &stage;
  while (node->kind == Node::Kind::load) {
    const Source& source = at->loads[node->load].source;
    if (source.input >= 0) return nullptr;
    at = &graph.stage(source.stage);
    if (at->is_reduction()) return nullptr;
    node = &at->nodes[at->values[source.value].result];
  }
  return node;
}

}  // namespace

bool is_sum_of_exponentials(const StageGraph& graph, const Stage& stage, const Node& node) {
  if (node.kind != Node::Kind::load) return false;
  const Load& load = stage.loads[node.load];
  if (load.source.input >= 0) return false;
  const Stage& sum = graph.stage(load.source.stage);
  if (!sum.combine || sum.values.size() != 1 || !sum.combine->root()->is(hlo::Opcode::add) ||
      sum.out_elems() * 4 > stage.out_elems() * stage.red_elems())
    return false;
  const Node* summand = maker(graph, sum, sum.values[0].result);
  return summand && summand->kind == Node::Kind::op && summand->fast &&
         summand->opcode == hlo::Opcode::exponential;
}

namespace {

// Whether the value is the same for all lanes, which run along digit `lane`.
bool is_shared(const Stage& stage, int number, int lane) {
  const Node& node = stage.nodes[number];
  switch (node.kind) {
    case Node::Kind::constant:
      return true;
    case Node::Kind::load: {
      const Load& load = stage.loads[node.load];
      return load.guards.empty() &&
             std::none_of(load.coordinates.begin(), load.coordinates.end(),
                          [&](const index::Expr& x) { return x.uses(lane) || x.uses_runtime(); });
    }
    case Node::Kind::op:
      return std::all_of(node.operands.begin(), node.operands.end(),
                         [&](int operand) { return is_shared(stage, operand, lane); });
    default:
      return false;
  }
}

int64_t points(const Stage& stage) { return stage.out_elems() * stage.red_elems(); }

// Whether the divisor is constant along a row and the stage has enough divisions for a reciprocal
// to pay: statistics of rows are few divisions.
bool divides_by_row(const StageGraph& graph, const Stage& stage, const Node& node) {
  const int lane = contiguous_digit(stage);
  for (const Stage& other : graph.stages)
    if (points(other) > 16 * points(stage)) return false;
  return lane >= 0 && stage.extents()[static_cast<size_t>(lane)] >= kLeastRow &&
         is_shared(stage, node.operands[1], lane) && !is_shared(stage, node.operands[0], lane);
}

// Whether every reader of the node adds 1 to it, as GELU does with erf and tanh.
bool all_add_one(const Stage& stage, int number) {
  bool read = false;
  for (const Value& value : stage.values)
    if (value.result == number) return false;
  for (const Node& node : stage.nodes) {
    if (node.kind != Node::Kind::op ||
        std::find(node.operands.begin(), node.operands.end(), number) == node.operands.end())
      continue;
    read = true;
    if (node.opcode != hlo::Opcode::add) return false;
    int other = node.operands[0] == number ? node.operands[1] : node.operands[0];
    if (!is_one(stage.nodes[other])) return false;
  }
  return read;
}

}  // namespace

void mark_fast_forms(StageGraph* graph) {
  auto note = [&](const char* text) {
    if (std::find(graph->rewrites.begin(), graph->rewrites.end(), text) == graph->rewrites.end())
      graph->rewrites.push_back(text);
  };
  for (Stage& stage : graph->stages) {
    if (stage.exact)
      note(
          "fast_forms: running sums are computed by vectors, in a different order "
          "(docs/numerics.md#fast-forms)");
    stage.exact = false;
    for (size_t i = 0; i < stage.nodes.size(); ++i) {
      Node& node = stage.nodes[i];
      if (node.kind != Node::Kind::op || node.type != Type::f32) continue;
      if (node.opcode == hlo::Opcode::exponential) {
        const Node& argument = stage.nodes[node.operands[0]];
        node.fast = argument.kind == Node::Kind::op && argument.opcode == hlo::Opcode::subtract &&
                    is_row_maximum(*graph, stage, stage.nodes[argument.operands[1]]);
        if (node.fast)
          note(
              "fast_forms: softmax computes exponentials with a shorter polynomial "
              "(docs/numerics.md#fast-forms)");
      } else if (node.opcode == hlo::Opcode::divide) {
        node.fast = is_sum_of_exponentials(*graph, stage, stage.nodes[node.operands[1]]);
        if (node.fast)
          note(
              "fast_forms: softmax multiplies by a reciprocal instead of dividing "
              "(docs/numerics.md#fast-forms)");
        if (node.fast || !divides_by_row(*graph, stage, node)) continue;
        node.fast = true;
        note(
            "fast_forms: division by one value per row multiplies by its reciprocal and corrects "
            "(docs/numerics.md#fast-forms)");
      } else if (node.opcode == hlo::Opcode::logistic) {
        node.fast = true;
        note("fast_forms: sigmoid uses a shorter polynomial (docs/numerics.md#fast-forms)");
      } else if (node.opcode == hlo::Opcode::erf || node.opcode == hlo::Opcode::tanh) {
        node.fast = all_add_one(stage, static_cast<int>(i));
        if (node.fast)
          note(
              "fast_forms: GELU computes erf or tanh with a shorter polynomial "
              "(docs/numerics.md#fast-forms)");
      }
    }
  }
}

}  // namespace heddle::schedule
