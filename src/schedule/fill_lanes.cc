#include "schedule/fill_lanes.h"

#include <algorithm>
#include <numeric>

#include "stage/stage_builder.h"

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kMostFilled = 12;  // vectors in a merged row, at most

// The digits of rows that are contiguous in the output, and of their columns.
struct Rows {
  int row, column;
  int64_t width;

  // An access without the elements of rows that follow one another in memory as columns do.
  Expr beside(const Expr& x) const {
    const int64_t step = x.factor_of(column);
    return x - Expr::digit(row) * (step * width) - Expr::digit(column) * step;
  }
  // Whether rows do so, or do not move at all.
  bool run_on(const Expr& x) const {
    const Expr rest = beside(x);
    return !rest.uses(row) && !rest.uses(column);
  }
};

// Replaces rows by those of `count` rows each; by one without a digit, if that is all of them. An
// access that ran on still does.
void merge_rows(Stage* stage, const Rows& rows, int64_t count) {
  const std::vector<Load> loads = stage->loads;
  const Expr position = stage->position;
  const int64_t together = count * rows.width;
  int64_t& left = stage->out[rows.row].extent;
  left /= count;
  stage->out[rows.column].extent = together;
  const int column = left > 1 ? rows.column : rows.row;
  const Expr before = left > 1 ? Expr::digit(rows.row) : Expr(0), at = Expr::digit(column);
  if (left == 1) stage->out.erase(stage->out.begin() + rows.row);
  std::vector<Expr> with;
  for (int d = 0; d < rows.row; ++d) with.push_back(Expr::digit(d));
  with.push_back(before * count + floor_div(at, rows.width, stage->extents()));
  with.push_back(mod(at, rows.width, stage->extents()));
  substitute_stage(stage, with);
  auto along = [&](const Expr& x) {
    const int64_t step = x.factor_of(rows.column);
    return rows.beside(x) + before * (step * together) + at * step;
  };
  for (size_t i = 0; i < loads.size(); ++i)
    if (rows.run_on(loads[i].coordinates[0]))
      stage->loads[i].coordinates = {along(loads[i].coordinates[0])};
  stage->position = along(position);
}

// Long rows of which an input has one element each.
bool fills_whole_vectors(const Stage& stage, const Rows& rows, int64_t count, int lanes) {
  if (count == 1 || rows.width < lanes || stage.out[rows.row].extent % count != 0 ||
      count * rows.width > kMostFilled * lanes)
    return false;
  bool repeats = false;
  for (const Node& node : stage.nodes)
    if (node.index.uses(rows.row) || node.index.uses(rows.column) || !node.guards.empty())
      return false;
  for (const Load& load : stage.loads) {
    if (!load.guards.empty()) return false;
    const Expr& x = load.coordinates[0];
    if (rows.run_on(x)) continue;
    const Expr rest = x - Expr::digit(rows.row) * x.factor_of(rows.row);
    if (x.uses(rows.column) || rest.uses(rows.row) || x.uses_runtime()) return false;
    repeats = true;
  }
  return repeats;
}

// Rows shorter than a vector, of which each is contiguous in an input, near the next one: pixels of
// three channels that become four.
bool share_lanes(const Stage& stage, const Rows& rows, int lanes) {
  if (rows.width >= lanes || lanes % rows.width != 0 || stage.out[rows.row].extent == 1)
    return false;
  bool apart = false;
  // A guard may not combine rows and columns.
  auto knows_row = [&](const index::Guard& guard) {
    const Expr rest = guard.value - Expr::digit(rows.row);
    return !guard.value.uses(rows.row) || rest.is_constant();
  };
  for (const Node& node : stage.nodes)
    if (node.index.uses(rows.row) || !std::ranges::all_of(node.guards, knows_row)) return false;
  for (const Load& load : stage.loads) {
    const Expr& x = load.coordinates[0];
    const int64_t step = x.factor_of(rows.row);
    const Expr rest = x - Expr::digit(rows.row) * step - Expr::digit(rows.column);
    if (!std::ranges::all_of(load.guards, knows_row)) return false;
    if (rows.run_on(x) && load.guards.empty()) continue;
    if (x.uses_runtime() || rest.uses(rows.row) || rest.uses(rows.column) || step <= 0 ||
        step > 2 * rows.width)
      return false;
    apart |= step != rows.width;
  }
  return apart;
}

}  // namespace

void fill_lanes(StageGraph* graph, int lanes) {
  if (graph->stages.size() != 1) return;
  Stage& stage = graph->stages[0];
  const int last = static_cast<int>(stage.out.size()) - 1;
  if (stage.kind != hlo::StageKind::map || last < 1) return;
  const Rows rows{last - 1, last, stage.out[static_cast<size_t>(last)].extent};
  const bool inputs =
      std::ranges::all_of(stage.loads, [](const Load& load) { return load.source.input >= 0; });
  if (!inputs || !rows.run_on(stage.position)) return;
  const int64_t count = lanes / std::gcd(rows.width, int64_t{lanes});
  if (share_lanes(stage, rows, lanes))
    merge_rows(&stage, rows, stage.out[static_cast<size_t>(rows.row)].extent);
  else if (fills_whole_vectors(stage, rows, count, lanes))
    merge_rows(&stage, rows, count);
}

}  // namespace heddle::schedule
