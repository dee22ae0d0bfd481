// A result that is stored in parts (stage/parts.h): each part, with its producers, is placed like a
// separate fusion and stores into its place in the result. The parts are groups of the same phases.
//
//   phase: group: for row of part 0 parallel: for element of the row vector
//          group: for row of part 1 parallel: ...
#include <algorithm>

#include "schedule/place_rows.h"
#include "schedule/strategy.h"
#include "schedule/task_loops.h"
#include "stage/top_k.h"

namespace heddle::schedule {

namespace {

// The part of each stage, as the number of the part's last stage; producers belong to the part of
// their readers.
std::vector<size_t> parts_of(const StageGraph& graph) {
  std::vector<size_t> part(graph.stages.size());
  for (size_t i = graph.stages.size(); i-- > 0;) {
    if (is_output(graph.stages[i])) part[i] = i;
    for (const Load& load : graph.stages[i].loads)
      if (load.source.input < 0) part[load.source.stage.index()] = part[i];
  }
  return part;
}

StageGraph subgraph(const StageGraph& graph, const std::vector<size_t>& part_of, size_t part) {
  StageGraph result{graph.name, {}, graph.inputs, graph.outputs, graph.rewrites};
  std::vector<StageId> moved(graph.stages.size());
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    if (part_of[i] != part) continue;
    moved[i] = StageId(result.stages.size());
    Stage& stage = result.stages.emplace_back(graph.stages[i]);
    for (Load& load : stage.loads)
      if (load.source.input < 0) load.source.stage = moved[load.source.stage.index()];
  }
  return result;
}

void append(PlacedFusion part, PlacedFusion* all) {
  const size_t stages = all->graph.stages.size();
  const auto nodes = static_cast<int>(all->schedule.nodes.size());
  const auto move = [&](StageId& id) { id = StageId(id.index() + stages); };
  for (Stage& stage : part.graph.stages) {
    for (Load& load : stage.loads)
      if (load.source.input < 0) move(load.source.stage);
    all->graph.stages.push_back(std::move(stage));
  }
  const auto move_body = [&](std::vector<int>& body) {
    for (int& node : body) node += nodes;
  };
  for (ScheduleNode& node : part.schedule.nodes) {
    if (auto* loop = std::get_if<Loop>(&node)) {
      for (Drive& drive : loop->drives) move(drive.stage);
      move_body(loop->body);
    } else {
      for (StageId& stage : std::get<Row>(node).joined) move(stage);
    }
    all->schedule.nodes.push_back(std::move(node));
  }
  if (all->schedule.phases.size() < part.schedule.phases.size())
    all->schedule.phases.resize(part.schedule.phases.size());
  for (size_t p = 0; p < part.schedule.phases.size(); ++p)
    for (Group& group : part.schedule.phases[p]) {
      move_body(group.body);
      all->schedule.phases[p].push_back(std::move(group));
    }
}

}  // namespace

bool parts_applies(const Problem& problem, const PlacedFusion&) {
  for (size_t o = 0; o < problem.graph.outputs.size(); ++o)
    if (problem.graph.is_in_parts(static_cast<int>(o))) return true;
  return false;
}

PlacedFusion place_parts(const Problem& problem) {
  PlacedFusion result;
  StageGraph graph = problem.graph;
  if (problem.product()) {
    result.decision = Decision::no("parts", "{} is a product beside parts of a result",
                                   graph.stage(problem.product()->stage).name);
    return result;
  }
  const bool plain = std::ranges::all_of(graph.stages, [](const Stage& stage) {
    return stage.kind == hlo::StageKind::map || stage.kind == hlo::StageKind::reduce;
  });
  if (plain && !stage::has_top_k(graph)) merge_digits(&graph);  // others need them unmerged
  const std::vector<size_t> part_of = parts_of(graph);
  for (size_t i = 0; i < graph.stages.size(); ++i)
    for (const Load& load : graph.stages[i].loads)
      if (load.source.input < 0 && part_of[load.source.stage.index()] != part_of[i])
        result.decision = Decision::no("parts", "{} is read by several parts of a result",
                                       graph.stage(load.source.stage).name);
  result.graph = StageGraph{graph.name, {}, graph.inputs, graph.outputs, graph.rewrites};
  result.schedule.name = graph.name;
  result.schedule.target = problem.target.name;
  for (size_t part = 0; part < graph.stages.size() && result.decision; ++part) {
    if (part_of[part] != part) continue;
    PlacedFusion placed = place_rows(subgraph(graph, part_of, part), problem.target);
    result.decision = placed.decision;
    if (result.decision) append(std::move(placed), &result);
  }
  if (!result.decision) return result;
  for (size_t i = result.graph.stages.size(); i-- > 0;)
    for (const Value& value : result.graph.stages[i].values)
      if (value.output >= 0)
        result.graph.outputs[static_cast<size_t>(value.output)].stage = StageId(i);
  result.placement = place_values(result.graph, result.schedule, problem.target);
  result.decision = result.placement.decision;
  return result;
}

}  // namespace heddle::schedule
