#include "schedule/strides.h"

#include <algorithm>

#include "schedule/turn.h"

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kSmallElems = 4096;

// Lanes along `digit` are neighbours, or all the same element, or nobody knows before the run.
bool is_beside(const Expr& x, int digit) {
  return !x.uses(digit) || x.uses_runtime() ||
         (x.factor_of(digit) == 1 && !(x - Expr::digit(digit)).uses(digit));
}

int64_t strided_of(const StageGraph& graph, const Stage& stage, int lane, int turned) {
  int64_t elems = 0;
  for (size_t i = 0; i < stage.loads.size(); ++i) {
    const Load& load = stage.loads[i];
    if (load.source.input < 0 || static_cast<int>(i) == turned ||
        is_beside(load.coordinates[0], lane))
      continue;
    if (graph.inputs[static_cast<size_t>(load.source.input)].shape.elems() < kSmallElems) continue;
    elems += stage.out_elems() * stage.red_elems();
  }
  const bool stored = std::any_of(stage.values.begin(), stage.values.end(),
                                  [](const Value& value) { return value.output >= 0; });
  if (stored && stage.out_elems() >= kSmallElems && lane < static_cast<int>(stage.out.size()) &&
      !is_beside(stage.position, lane))
    elems += stage.out_elems();
  return elems;
}

}  // namespace

int64_t strided_elems(const PlacedFusion& placed, const target::Target& target) {
  int64_t elems = 0;
  if (!placed.decision) return elems;
  for (const ScheduleNode& node : placed.schedule.nodes) {
    const Row* row = std::get_if<Row>(&node);
    if (!row || row->gemm || row->own.empty() || row->own.back().kind != LoopKind::vector) continue;
    const Stage& first = placed.graph.stage(row->joined[0]);
    const std::optional<TurnForm> turn = match_turn(placed.graph, first, target);
    for (size_t m = 0; m < row->joined.size(); ++m)
      if (const int lane = row->own.back().digits[m]; lane >= 0)
        elems += strided_of(placed.graph, placed.graph.stage(row->joined[m]), lane,
                            turn ? turn->load : -1);
  }
  return elems;
}

}  // namespace heddle::schedule
