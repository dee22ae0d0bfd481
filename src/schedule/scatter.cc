// Scatter of rows into a table: each task owns some table rows, and looks through all updates for
// theirs. Scatters into each other's results are one row of the schedule.
//
//   for rows of the table parallel: old rows; for update: if its row is in this task: combine
#include <algorithm>

#include "schedule/strategy.h"

namespace heddle::schedule {

namespace {

constexpr int64_t kLeastRows = 64;  // of a task
constexpr int64_t kTasksOfCore = 4;
// Every task inspects every update, which takes about as long as storing a vector: the number of
// tasks keeps this to at most half of the work.
constexpr int64_t kVectorsOfTask = 2;

// Whether the stage is a scatter that reads no other stage but the previous one, as the initial
// contents of its table.
bool goes_on(const StageGraph& graph, size_t number) {
  const Stage& stage = graph.stages[number];
  if (stage.scatter < 0) return false;
  for (size_t n = 0; n < stage.nodes.size(); ++n) {
    if (stage.nodes[n].kind != Node::Kind::load) continue;
    const Load& load = stage.loads[static_cast<size_t>(stage.nodes[n].load)];
    if (load.source.input >= 0) continue;
    if (static_cast<int>(n) != stage.values[0].init || load.source.stage.index() + 1 != number)
      return false;
    for (size_t d = 0; d < load.coordinates.size(); ++d)
      if (!(load.coordinates[d] == index::Expr::digit(static_cast<int>(d)))) return false;
  }
  return number == 0 || stage.values[0].init >= 0;
}

}  // namespace

bool scatter_applies(const Problem& problem, const PlacedFusion&) {
  return problem.has(hlo::StageKind::scatter);
}

PlacedFusion place_scatter(const Problem& problem) {
  PlacedFusion result;
  result.graph = problem.graph;
  merge_digits(&result.graph);
  const StageGraph& graph = result.graph;
  Row row;
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const bool last = i + 1 == graph.stages.size();
    if (!goes_on(graph, i) || last != (graph.stages[i].values[0].output >= 0)) {
      result.decision = Decision::no("scatter", "{} stands beside rows that go into a table",
                                     graph.stages[i].name);
      return result;
    }
    row.joined.push_back(StageId(i));
  }
  const int64_t rows = graph.stages.back().out[0].extent;
  const int64_t width = graph.stages.back().out_elems() / std::max<int64_t>(rows, 1);
  int64_t updates = 0;
  for (const Stage& stage : graph.stages) updates += std::max<int64_t>(stage.red_elems(), 1);
  const int64_t cleared = graph.stages.front().values[0].init >= 0 ? rows : 0;
  const int64_t vectors = (updates + cleared) * width / problem.target.lanes(Type::f32) / updates;
  const int64_t tasks = std::clamp<int64_t>(std::min(rows / kLeastRows, vectors / kVectorsOfTask),
                                            1, kTasksOfCore * problem.target.cores);
  const int64_t each = (rows + tasks - 1) / tasks;
  Loop loop{"t0", LoopKind::parallel, (rows + each - 1) / each, {}, {0}};
  for (StageId stage : row.joined) loop.drives.push_back({stage, 0, each});
  result.schedule.name = graph.name;
  result.schedule.target = problem.target.name;
  result.schedule.nodes = {std::move(row), std::move(loop)};
  result.schedule.phases = {{Group{{1}, problem.target.lanes(Type::f32)}}};
  result.placement = place_values(graph, result.schedule, problem.target);
  result.decision = result.placement.decision;
  return result;
}

}  // namespace heddle::schedule
