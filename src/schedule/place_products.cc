// Products and convolutions in register tiles, with the maps of their epilogue.
#include <algorithm>

#include "cost/code_size.h"
#include "schedule/strategy.h"
#include "schedule/winograd_tuning.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// Joins the dot and the maps of its epilogue into a row.
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

}  // namespace

// A dot followed by reductions is left to column_sums.
bool gemm_applies(const Problem& problem, const PlacedFusion& best) {
  return problem.product() && (problem.product()->is_conv || !column_sums_applies(problem, best));
}

namespace {

// B is rounded while each task copies it into words. Steps of CRNN and DIEN take as long with 64
// copies of some filters as with a conversion of their own.
Decision fits_rounding(const Gemm& record, const GemmShape& shape, const Stage& stage) {
  constexpr int64_t kMostCopies = 64;
  if (record.word() == 1 || !record.copy_b || shape.b_panel > 0)
    return Decision::no("gemm-family", "{}: its right side is rounded before it is copied",
                        stage.name);
  const Expr& b = stage.loads[static_cast<size_t>(shape.b_load)].coordinates[0];
  const auto parts = [](int64_t extent, int64_t by) {
    return (extent + by - 1) / std::max<int64_t>(by, 1);
  };
  int64_t copies = parts(shape.m_extent, record.m_block) * parts(shape.y_extent, record.y_block);
  for (int d : shape.batch)
    if (!b.uses(d)) copies *= stage.out[static_cast<size_t>(d)].extent;
  copies = parts(copies, record.shared);
  if (copies > kMostCopies)
    return Decision::no("gemm-family", "{}: its right side would be rounded {} times", stage.name,
                        copies);
  return Decision::yes();
}

}  // namespace

// The family's schedule (stages.md §4.6).
PlacedFusion place_gemm(const Problem& problem) {
  const auto& [product, match, is_conv] = *problem.product();
  PlacedFusion result;
  GemmShapeOrNot found = match;
  bool rounded = false;
  if (!found.decision) {
    found = match_gemm(problem.graph, product, /*rounded=*/true);
    rounded = static_cast<bool>(found.decision);
  }
  result.decision = rounded ? Decision::yes() : match.decision;
  if (!result.decision) return result;
  GemmShape shape = found.shape;
  const target::Target& target = problem.target;
  const size_t dot = product.index();
  StageGraph graph = problem.graph;
  Row row;
  result.decision = join_maps(graph, dot, &row);
  if (!result.decision) return result;
  const Stage& stage = graph.stages[dot];
  const Load& a = stage.loads[static_cast<size_t>(shape.a_load)];
  const kernel::MmaDescriptor* mma = choose_product(&shape, stage, target);
  const Gemm record =
      choose_gemm(shape, stage, graph.inputs[a.source.input].shape.bytes(), target, mma);
  result.decision = fits_family(record, shape, stage);
  if (result.decision && rounded) result.decision = fits_rounding(record, shape, stage);
  if (!result.decision) return result;
  result.decision = cost::fits_in_code(graph, row.joined, record, shape);
  if (!result.decision) return result;
  const int lanes = record.lanes;
  row.kind = GemmTile{record, shape, {}};
  finish(std::move(row), lanes, std::move(graph), target, &result);
  return result;
}

bool winograd_applies(const Problem& problem, const PlacedFusion&) {
  return std::any_of(problem.graph.stages.begin(), problem.graph.stages.end(),
                     [](const Stage& stage) { return stage.winograd > 0; });
}

PlacedFusion place_winograd(const Problem& problem) {
  StageGraph graph = problem.graph;
  const target::Target& target = problem.target;
  const auto transformed = std::find_if(graph.stages.begin(), graph.stages.end(),
                                        [](const Stage& stage) { return stage.winograd > 0; });
  const auto conv = static_cast<size_t>(transformed - graph.stages.begin());
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
  Gemm outputs;  // a tile as the epilogue sees it
  outputs.mr = stage.winograd * stage.winograd;
  result.decision = cost::fits_in_code(graph, row.joined, outputs);
  if (!result.decision) return result;
  row.kind = WinogradTile{record, shape};
  finish(std::move(row), lanes, std::move(graph), target, &result);
  return result;
}

}  // namespace heddle::schedule
