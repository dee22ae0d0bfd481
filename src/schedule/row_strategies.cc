// Row strategies of one phase, which are compared by price.
#include <algorithm>

#include "cost/strides.h"
#include "schedule/fill_lanes.h"
#include "schedule/phases.h"
#include "schedule/place_rows.h"
#include "schedule/strategy.h"
#include "schedule/turn.h"
#include "schedule/windows.h"
#include "stage/top_k.h"

namespace heddle::schedule {

namespace {

size_t count_digits(const StageGraph& graph) {
  size_t sum = 0;
  for (const Stage& stage : graph.stages) sum += stage.extents().size();
  return sum;
}

// Merges adjacent digits, for full vectors across an image's lines. False: a form of rows (windows,
// a single pass of squares) needs them unmerged, or there are none to merge.
bool merge(StageGraph* graph, const target::Target& target) {
  bool turned = false;
  for (const Stage& stage : graph->stages) {
    const bool plain = stage.kind == hlo::StageKind::map || stage.kind == hlo::StageKind::reduce;
    turned |= match_turn(*graph, stage, target).has_value();
    if (!plain || match_window(stage, target) || (turned && graph->stages.size() == 1))
      return false;
  }
  const size_t before = count_digits(*graph);
  merge_digits(graph);
  return count_digits(*graph) < before;
}

}  // namespace

bool top_k_applies(const Problem& problem, const PlacedFusion&) {
  return has_top_k(problem.graph) && problem.target.kind != target::DeviceKind::gpu;
}

// A product beside a top-k would need a different schedule.
PlacedFusion place_top_k(const Problem& problem) {
  PlacedFusion result;
  for (const Stage& stage : problem.graph.stages)
    if (stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv)
      result.decision = Decision::no("top-k", "{} is a product beside a top-k", stage.name);
  return result.decision ? place_rows(problem.graph, problem.target) : result;
}

bool scan_applies(const Problem& problem, const PlacedFusion&) {
  return problem.has(hlo::StageKind::scan);
}

// Digits are not merged: a scan's must stay separate.
PlacedFusion place_scan(const Problem& problem) {
  PlacedFusion result;
  if (problem.product())
    result.decision = Decision::no("scan", "{} is a product beside a running sum",
                                   problem.graph.stage(problem.product()->stage).name);
  return result.decision ? place_rows(problem.graph, problem.target) : result;
}

bool may_be_rows(const Problem& problem) {
  return !problem.product() || problem.graph.stages.size() == 1;
}

static bool has_turn(const StageGraph& graph, const target::Target& target) {
  return std::ranges::any_of(graph.stages, [&](const Stage& stage) {
    return match_turn(graph, stage, target).has_value();
  });
}

// Merged digits may leave too few tasks, or prevent transposing in squares.
bool rows_applies(const Problem& problem, const PlacedFusion& best) {
  return may_be_rows(problem) &&
         (!best.decision || best.schedule.count_tasks() < 8 * problem.target.cores ||
          has_turn(best.graph, problem.target));
}

PlacedFusion place_rows(const Problem& problem) {
  return place_rows(problem.row_graph(), problem.target);
}

bool merged_rows_applies(const Problem& problem, const PlacedFusion&) {
  return may_be_rows(problem);
}

PlacedFusion place_merged_rows(const Problem& problem) {
  StageGraph graph = problem.row_graph();
  if (merge(&graph, problem.target)) return place_rows(std::move(graph), problem.target);
  PlacedFusion result;
  result.decision = Decision::no(kDoesNotApply, "there are no digits to merge");
  return result;
}

// Applies if data moves across the lanes, or if values kept between the sweeps of a row take half
// of the first cache: then they are read from the second cache, like their inputs.
bool repeated_rows_applies(const Problem& problem, const PlacedFusion& best) {
  if (!may_be_rows(problem) || !best.decision || best.graph.stages.size() == 1 ||
      has_few_tasks(best, problem.target))
    return false;
  return cost::strided_elems(best) > 0 ||
         2 * best.placement.scratch_bytes > problem.target.first_cache_bytes();
}

PlacedFusion place_repeated_rows(const Problem& problem) {
  StageGraph graph = problem.staged_again();
  flatten_digits(&graph);
  if (graph.stages.size() == problem.graph.stages.size()) {
    PlacedFusion result;
    result.decision = Decision::no(kDoesNotApply, "no cheap value has several readers");
    return result;
  }
  StageGraph apart = graph;
  const bool turns = has_turn(graph, problem.target);
  const bool merged = merge(&graph, problem.target);
  PlacedFusion placed = place_rows(std::move(graph), problem.target);
  if (!merged || !turns) return placed;
  // Transposed stages need short strips, whose inputs are still in the first cache when they are
  // read again; the price does not model that.
  PlacedFusion other = place_rows(std::move(apart), problem.target);
  const bool shorter =
      other.decision && 2 * placed.schedule.count_tasks() < other.schedule.count_tasks();
  return !placed.decision || shorter ? other : placed;
}

}  // namespace heddle::schedule
