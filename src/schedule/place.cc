// Dots and convolutions by their family; everything else in rows (place_rows.cc).
#include "schedule/place.h"

#include <algorithm>

#include "cost/code_size.h"
#include "cost/strides.h"
#include "schedule/cascade.h"
#include "schedule/chain.h"
#include "schedule/column_sums.h"
#include "schedule/fast_forms.h"
#include "schedule/fill_lanes.h"
#include "schedule/group_lanes.h"
#include "schedule/phases.h"
#include "schedule/place_chain.h"
#include "schedule/place_gpu_rows.h"
#include "schedule/place_rows.h"
#include "schedule/pooled.h"
#include "schedule/turn.h"
#include "schedule/windows.h"
#include "schedule/winograd_tuning.h"
#include "stage/top_k.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// The dot, and the maps that hang on its tiles.
Decision join_maps(const StageGraph& graph, size_t dot, Row* row) {
  row->joined.push_back(StageId(dot));
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    if (i == dot) continue;
    const Stage& stage = graph.stages[i];
    if (stage.is_reduction() || i < dot || stage.out_elems() != graph.stages[dot].out_elems())
      return Decision::no("gemm-epilogue", "{} does not follow the tiles of {}", stage.name,
                          graph.stages[dot].name);
    row->joined.push_back(StageId(i));
  }
  std::vector<std::vector<Expr>> digits;
  return invert_epilogue(graph, row->joined, &digits);
}

void finish(Row row, int lanes, StageGraph graph, const target::Target& target,
            PlacedFusion* result) {
  result->schedule.name = graph.name;
  result->schedule.target = target.name;
  result->schedule.nodes.emplace_back(std::move(row));
  result->schedule.phases.push_back({Group{{0}, lanes}});
  result->graph = std::move(graph);
  result->placement = place_values(result->graph, result->schedule, target);
  result->decision = result->placement.decision;
}

// The family's schedule (stages.md §4.6).
PlacedFusion place_gemm(StageGraph graph, size_t dot, const GemmShape& shape,
                        const target::Target& target) {
  PlacedFusion result;
  Row row;
  result.decision = join_maps(graph, dot, &row);
  if (!result.decision) return result;
  const Stage& stage = graph.stages[dot];
  const Load& a = stage.loads[static_cast<size_t>(shape.a_load)];
  const Gemm record = choose_gemm(shape, stage, graph.inputs[a.source.input].shape.bytes(), target);
  result.decision = fits_family(record, shape, stage);
  if (!result.decision) return result;
  result.decision = cost::fits_in_code(graph, row.joined, record, shape);
  if (!result.decision) return result;
  const int lanes = record.lanes;
  row.kind = GemmTile{record, shape, {}};
  finish(std::move(row), lanes, std::move(graph), target, &result);
  return result;
}

// A convolution whose filter is transformed: it has no other schedule.
PlacedFusion place_winograd(StageGraph graph, size_t conv, const target::Target& target) {
  PlacedFusion result;
  Row row;
  WinogradShape shape;
  result.decision = match_winograd(graph, StageId(conv), target, &shape);
  if (result.decision) result.decision = join_maps(graph, conv, &row);
  if (!result.decision) return result;
  const Stage& stage = graph.stages[conv];
  const int lanes = target.lanes(Type::f32);
  const int nv = static_cast<int>(shape.panel / lanes);
  std::optional<TunedWinograd> tuned;
  if (target.records) tuned = tuned_winograd(winograd_key(shape), shape, nv, target);
  const Winograd record = tuned && !tuned->direct && tuned->record.m == stage.winograd
                              ? tuned->record
                              : choose_winograd(shape, stage.winograd, nv, target);
  if (record.columns == 0 || shape.panel % lanes != 0) {
    result.decision =
        Decision::no("winograd-lanes", "{}: panels of {} features", stage.name, shape.panel);
    return result;
  }
  Gemm outputs;  // as the epilogue sees a tile
  outputs.mr = stage.winograd * stage.winograd;
  result.decision = cost::fits_in_code(graph, row.joined, outputs);
  if (!result.decision) return result;
  row.kind = WinogradTile{record, shape};
  finish(std::move(row), lanes, std::move(graph), target, &result);
  return result;
}

// In phases a value between two of them is computed again where that is cheap.
PlacedFusion place_in_phases(const stage::Members& members, const target::Target& target,
                             bool fast_forms) {
  PlacedFusion result;
  const bool reduces =
      std::any_of(members.instrs().begin(), members.instrs().end(),
                  [](const hlo::Instr* instr) { return instr->is(hlo::Opcode::reduce); });
  if (!reduces) {
    result.decision = Decision::no("one-phase", "nothing is reduced");
    return result;
  }
  StagedOrNot staged = stage::build_stage_graph(members, /*repeat_cheap=*/true);
  if (fast_forms) mark_fast_forms(&staged.graph);
  result.decision = staged.decision;
  if (!staged.decision) return result;
  merge_digits(&staged.graph);
  return place_phases(staged.graph, target);
}

// Rows in lanes, each with its list in registers: what threads do without each other.
PlacedFusion place_gpu_top_k(StageGraph graph, const target::Target& target) {
  PlacedFusion placed = place_gpu_rows(std::move(graph), target);
  if (!placed.decision) return placed;
  for (const ScheduleNode& node : placed.schedule.nodes) {
    const Row* row = std::get_if<Row>(&node);
    if (!row || !is_top_k(placed.graph.stage(row->joined[0])) || !row->own.empty()) continue;
    placed.decision = Decision::no("top-k", "{} is a list that threads would share",
                                   placed.graph.stage(row->joined[0]).name);
  }
  return placed;
}

// In rows of one phase; a product beside it would want another schedule.
PlacedFusion place_with_top_k(StageGraph graph, const target::Target& target, bool fast_forms) {
  PlacedFusion result;
  for (const Stage& stage : graph.stages)
    if (stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv)
      result.decision = Decision::no("top-k", "{} is a product beside a top-k", stage.name);
  if (!result.decision) return result;
  if (fast_forms) mark_fast_forms(&graph);
  if (target.kind == target::DeviceKind::gpu) return place_gpu_top_k(std::move(graph), target);
  return place_rows(std::move(graph), target);
}

int64_t count_tasks(const PlacedFusion& placed) {
  int64_t tasks = 1;
  for (const ScheduleNode& node : placed.schedule.nodes)
    if (const auto* loop = std::get_if<Loop>(&node); loop && loop->kind == LoopKind::parallel)
      tasks *= loop->trips;
  return tasks;
}

// Digits side by side become one, for full vectors over an image's lines, where no form of rows
// (windows, one pass of squares) wants them apart and the tasks do not become too few.
PlacedFusion place_merged(StageGraph graph, const target::Target& target) {
  auto digits = [](const StageGraph& of) {
    size_t sum = 0;
    for (const Stage& stage : of.stages) sum += stage.extents().size();
    return sum;
  };
  bool turned = false;
  for (const Stage& stage : graph.stages) {
    const bool plain = stage.kind == hlo::StageKind::map || stage.kind == hlo::StageKind::reduce;
    turned |= match_turn(graph, stage, target).has_value();
    if (!plain || match_window(stage, target) || (turned && graph.stages.size() == 1))
      return place_rows(std::move(graph), target);
  }
  StageGraph merged = graph;
  merge_digits(&merged);
  if (digits(merged) == digits(graph)) return place_rows(std::move(graph), target);
  PlacedFusion placed = place_rows(std::move(merged), target);
  if (placed.decision && !turned && count_tasks(placed) >= 8 * target.cores) return placed;
  PlacedFusion apart = place_rows(std::move(graph), target);
  if (!placed.decision || !apart.decision) return placed.decision ? placed : apart;
  // What is turned wants short strips of the merged digit (whole vectors that divide it).
  if (turned)
    return 2 * count_tasks(placed) < count_tasks(apart) ||
                   cost::strided_elems(placed) > cost::strided_elems(apart)
               ? apart
               : placed;
  return count_tasks(apart) > count_tasks(placed) ? apart : placed;
}

// Rows of them in which cheap values are computed by every reader.
PlacedFusion place_again(const stage::Members& members, const target::Target& target,
                         bool fast_forms) {
  StagedOrNot staged = stage::build_stage_graph(members, /*repeat_cheap=*/true);
  if (fast_forms) mark_fast_forms(&staged.graph);
  flatten_digits(&staged.graph);
  return place_merged(std::move(staged.graph), target);
}

// Values that are held between the sweeps of a row take half of the first cache: they come back
// from the second one, as what they are made of does.
bool holds_much(const PlacedFusion& placed, const target::Target& target) {
  return !target.caches.empty() && 2 * placed.placement.scratch_bytes > target.caches[0].bytes;
}

}  // namespace

PlacedFusion place(const stage::Members& members, const target::Target& target, bool fast_forms) {
  StagedOrNot staged = stage::build_stage_graph(members);
  if (staged.decision && has_top_k(staged.graph))
    return place_with_top_k(std::move(staged.graph), target, fast_forms);
  if (fast_forms) mark_fast_forms(&staged.graph);
  PlacedFusion result;
  if (!staged.decision) {
    result.decision = staged.decision;
    return result;
  }
  if (target.kind == target::DeviceKind::gpu) {
    flatten_digits(&staged.graph);
    return place_gpu_rows(std::move(staged.graph), target);
  }
  if (has_chain(staged.graph)) return place_chain(std::move(staged.graph), target);
  if (may_have_rows(staged.graph)) {
    PlacedFusion placed = place_chain(staged.graph, target);
    if (placed.decision) return placed;
  }
  for (size_t i = 0; i < staged.graph.stages.size(); ++i) {
    const bool conv = staged.graph.stages[i].kind == hlo::StageKind::conv;
    if (staged.graph.stages[i].kind != hlo::StageKind::dot && !conv) continue;
    if (staged.graph.stages[i].winograd > 0)
      return place_winograd(std::move(staged.graph), i, target);
    if (std::optional<StageGraph> shared = share_lanes(staged.graph, StageId(i), target)) {
      PlacedFusion placed = place_rows(std::move(*shared), target);
      if (placed.decision && count_windows(placed) > 0) return placed;
    }
    GemmShapeOrNot match = match_gemm(staged.graph, StageId(i));
    if (!match.decision) {
      // Convolutions outside the family (one feature a group, say) are reductions among others.
      if (staged.graph.stages.size() == 1 || conv) continue;
      result.decision = match.decision;
      return result;
    }
    if (conv && has_pool(staged.graph))
      return place_pooled(std::move(staged.graph), StageId(i), match.shape, target);
    const bool reduces =
        std::any_of(staged.graph.stages.begin(), staged.graph.stages.end(),
                    [](const Stage& stage) { return stage.kind == hlo::StageKind::reduce; });
    if (reduces && match.shape.m >= 0) {
      PlacedFusion placed = place_column_sums(staged.graph, StageId(i), match.shape, target);
      if (placed.decision || !conv) return placed;
    }
    if (!conv) return place_gemm(std::move(staged.graph), i, match.shape, target);
    PlacedFusion placed = place_gemm(staged.graph, i, match.shape, target);
    if (placed.decision || staged.graph.stages.size() > 1) return placed;
  }
  flatten_digits(&staged.graph);
  fill_lanes(&staged.graph, target.lanes(Type::f32));
  if (Cascade cascade = stripe_cascades(staged.graph, target); !cascade.striped.empty()) {
    PlacedFusion striped = place_rows(std::move(cascade.graph), target, std::move(cascade.striped));
    if (striped.decision && count_tasks(striped) >= 2 * target.cores) return striped;
  }
  PlacedFusion placed = place_merged(std::move(staged.graph), target);
  if (placed.decision && !has_few_tasks(placed, target)) {
    // What is turned is read from inputs: a value between would be read across the lanes.
    const int64_t across = cost::strided_elems(placed);
    const bool much = holds_much(placed, target);
    if ((across == 0 && !much) || placed.graph.stages.size() == 1) return placed;
    PlacedFusion other = place_again(members, target, fast_forms);
    if (!other.decision || has_few_tasks(other, target)) return placed;
    const int64_t left = cost::strided_elems(other);
    const bool smaller =
        much && left <= across && other.placement.scratch_bytes < placed.placement.scratch_bytes;
    return left < across || smaller ? other : placed;
  }
  PlacedFusion phases = place_in_phases(members, target, fast_forms);
  return phases.decision ? phases : placed;
}

}  // namespace heddle::schedule
