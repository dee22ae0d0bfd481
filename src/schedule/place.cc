// Dots and convolutions by their family; everything else in rows (place_rows.cc).
#include "schedule/place.h"

#include <algorithm>

#include "schedule/place_rows.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// The family's schedule: the dot's tiles, with the maps that hang on them (stages.md §4.6).
PlacedFusion place_gemm(StageGraph graph, size_t dot, const GemmShape& shape,
                        const target::Target& target) {
  PlacedFusion result;
  Row row;
  row.joined.push_back(StageId(dot));
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    if (i == dot) continue;
    const Stage& stage = graph.stages[i];
    if (stage.is_reduction() || i < dot || stage.out_elems() != graph.stages[dot].out_elems()) {
      result.decision = Decision::no("gemm-epilogue", "{} does not follow the tiles of {}",
                                     stage.name, graph.stages[dot].name);
      return result;
    }
    row.joined.push_back(StageId(i));
  }
  std::vector<std::vector<Expr>> digits;
  result.decision = invert_epilogue(graph, StageId(dot), &digits);
  if (!result.decision) return result;
  bool constant_b = shape.b_panel > 0;
  int nv = static_cast<int>(shape.b_panel / target.lanes(Type::f32));
  row.gemm = choose_gemm(shape.m_extent, shape.n_extent, shape.k_extent, constant_b, target, nv);
  row.gemm->copy_b = !constant_b && shape.b_n != 1;
  result.schedule.name = graph.name;
  result.schedule.target = target.name;
  int lanes = row.gemm->lanes;
  result.schedule.nodes.emplace_back(std::move(row));
  result.schedule.phases.push_back({Group{{0}, lanes}});
  result.graph = std::move(graph);
  target::Target roomy = target;
  result.placement = place_values(result.graph, result.schedule, roomy);
  result.decision = result.placement.decision;
  return result;
}

}  // namespace

PlacedFusion place(const hlo::Computation& fusion, const target::Target& target,
                   bool fast_forms) {
  StagedOrNot staged = build_stage_graph(fusion);
  if (fast_forms) mark_fast_forms(&staged.graph);
  PlacedFusion result;
  if (!staged.decision) {
    result.decision = staged.decision;
    return result;
  }
  for (size_t i = 0; i < staged.graph.stages.size(); ++i) {
    if (staged.graph.stages[i].kind != hlo::StageKind::dot) continue;
    GemmShapeOrNot match = match_gemm(staged.graph, StageId(i));
    if (!match.decision) {
      if (staged.graph.stages.size() == 1) continue;
      result.decision = match.decision;
      return result;
    }
    return place_gemm(std::move(staged.graph), i, match.shape, target);
  }
  flatten_digits(&staged.graph);
  return place_rows(std::move(staged.graph), target);
}

}  // namespace heddle::schedule
