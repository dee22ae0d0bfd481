#include "schedule/fill_lanes.h"

#include <numeric>

#include "stage/stage_builder.h"

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kMostFilled = 12;  // vectors in a merged row, at most

}  // namespace

void fill_lanes(StageGraph* graph, int lanes) {
  if (graph->stages.size() != 1) return;
  Stage& stage = graph->stages[0];
  const int last = static_cast<int>(stage.out.size()) - 1, row = last - 1;
  if (stage.kind != hlo::StageKind::map || last < 1) return;
  const int64_t width = stage.out[last].extent, rows = lanes / std::gcd(width, int64_t{lanes});
  if (rows == 1 || width < lanes || stage.out[row].extent % rows != 0 ||
      rows * width > kMostFilled * lanes)
    return;
  // Rows must be contiguous, or have one element each.
  auto runs_on = [&](const Expr& x) {
    const int64_t step = x.factor_of(last);
    const Expr rest = x - Expr::digit(row) * (step * width) - Expr::digit(last) * step;
    return !rest.uses(row) && !rest.uses(last);
  };
  bool repeats = false;
  for (const Load& load : stage.loads) {
    if (load.source.input < 0 || !load.guards.empty()) return;
    const Expr& x = load.coordinates[0];
    if (runs_on(x)) continue;
    const Expr rest = x - Expr::digit(row) * x.factor_of(row);
    if (x.uses(last) || rest.uses(row) || x.uses_runtime()) return;
    repeats = true;
  }
  for (const Node& node : stage.nodes)
    if (node.index.uses(last) || node.index.uses(row) || !node.guards.empty()) return;
  if (!repeats || !runs_on(stage.position)) return;
  const std::vector<Load> loads = stage.loads;
  const Expr position = stage.position;
  const int64_t together = rows * width;
  stage.out[row].extent /= rows;
  stage.out[last].extent = together;
  std::vector<Expr> with;
  for (int d = 0; d < row; ++d) with.push_back(Expr::digit(d));
  with.push_back(Expr::digit(row) * rows + floor_div(Expr::digit(last), width, stage.extents()));
  with.push_back(mod(Expr::digit(last), width, stage.extents()));
  substitute_stage(&stage, with);
  auto run_on = [&](const Expr& x) {
    const int64_t step = x.factor_of(last);
    return x + Expr::digit(row) * (step * (together - width));
  };
  for (size_t i = 0; i < loads.size(); ++i)
    if (runs_on(loads[i].coordinates[0]))
      stage.loads[i].coordinates = {run_on(loads[i].coordinates[0])};
  stage.position = run_on(position);
}

}  // namespace heddle::schedule
