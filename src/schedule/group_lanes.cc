// Convolutions in groups of few features: one group does not fill the lanes, so neighbouring groups
// share them. Group and feature are merged into one digit c, in memory order; the input is then
// read at (c floordiv features)·inputs + i, one element (or word of elements, where there is an
// instruction for words) for the lanes of a group, and the convolution is a window (windows.h)
// whose lanes run over c.
#include "schedule/place_rows.h"
#include "schedule/strategy.h"

#include <algorithm>

#include "schedule/gemm.h"
#include "schedule/windows.h"
#include "stage/stage_builder.h"

namespace heddle::schedule {

using index::Expr;

namespace {

// Elements that a step of the sum multiplies, at most.
int64_t word_of(const Stage& conv, const target::Target& target) {
  const std::optional<Sides> sides = find_sides(conv);
  const std::optional<Type> sums = sum_type(conv.values[0].type);
  if (!sides || !sums) return 1;
  return find_product(load_type(conv, sides->a), load_type(conv, sides->b), *sums, target)->k;
}

// The out digit of the groups, followed by the digit of a group's features; -1: none.
int find_groups(const Stage& conv, const target::Target& target) {
  const int group = static_cast<int>(conv.out.size()) - 2;
  if (group < 0) return -1;
  const int64_t lanes = target.lanes(Type::f32), word = word_of(conv, target);
  const int64_t features = conv.out.back().extent;
  if (conv.position.factor_of(group + 1) != 1 || conv.position.factor_of(group) != features ||
      lanes % features != 0)
    return -1;
  bool apart = false, weights = false;
  for (const Load& load : conv.loads) {
    if (load.source.input < 0) return -1;
    const Expr& x = load.coordinates[0];
    if (x.uses(group + 1)) {
      weights |= x.uses(group);
      continue;
    }
    if (!x.uses(group)) continue;
    // The inputs of one vector's groups span two vectors at most.
    const int64_t inputs = x.factor_of(group);
    if (inputs < 1 || (x - Expr::digit(group) * inputs).uses(group) || inputs > 2 * features * word)
      return -1;
    apart = true;
  }
  return apart && weights ? group : -1;
}

void join_digits(Stage* stage, int group) {
  const auto at = static_cast<size_t>(group);
  const int64_t features = stage->out[at + 1].extent;
  stage->out[at] = {stage->out[at].name, stage->out[at].extent * features};
  stage->out.erase(stage->out.begin() + group + 1);
  const std::vector<int64_t> extents = stage->extents();
  std::vector<Expr> with;
  for (size_t d = 0; d < extents.size() + 1; ++d) {
    if (d == at) {
      with.push_back(floor_div(Expr::digit(group), features, extents));
    } else if (d == at + 1) {
      with.push_back(mod(Expr::digit(group), features, extents));
    } else {
      with.push_back(Expr::digit(static_cast<int>(d > at ? d - 1 : d)));
    }
  }
  substitute_stage(stage, with);
  for (Load& load : stage->loads) {
    if (load.source.input >= 0) continue;
    load.coordinates[at] = load.coordinates[at] * features + load.coordinates[at + 1];
    load.coordinates.erase(load.coordinates.begin() + group + 1);
  }
}

// The graph with the merged digit in all of its stages. None: the convolution has no groups of few
// features, its epilogue does not follow them, or it is no window.
std::optional<StageGraph> share_lanes(const StageGraph& graph, StageId conv,
                                      const target::Target& target) {
  const Stage& stage = graph.stage(conv);
  if (stage.kind != hlo::StageKind::conv || stage.winograd > 0) return std::nullopt;
  const int group = find_groups(stage, target);
  if (group < 0) return std::nullopt;
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Stage& other = graph.stages[i];
    if (i != conv.index() && (other.is_reduction() || other.out_extents() != stage.out_extents()))
      return std::nullopt;
  }
  StageGraph joined = graph;
  for (Stage& each : joined.stages) join_digits(&each, group);
  const std::optional<WindowForm> form = match_window(joined.stage(conv), target);
  const Type type = stage.values[0].type;
  if (!form || (type != Type::f32 && type != Type::f64 && !form->mma->is_dot()))
    return std::nullopt;
  return joined;
}

}  // namespace

// A group that fills a vector is left to a product in words, if there is an instruction for it.
bool group_lanes_applies(const Problem& problem, const PlacedFusion&) {
  if (!problem.has(hlo::StageKind::conv)) return false;
  if (!problem.product() || !problem.product()->match.decision) return true;
  const Stage& conv = problem.graph.stage(problem.product()->stage);
  const GemmShape& shape = problem.product()->match.shape;
  return conv.out.back().extent != problem.target.lanes(Type::f32) ||
         find_product(shape, conv, problem.target)->k == 1;
}

PlacedFusion place_group_lanes(const Problem& problem) {
  PlacedFusion result;
  result.decision = Decision::no(kDoesNotApply, "no convolution in groups of few features");
  for (size_t i = 0; i < problem.graph.stages.size(); ++i) {
    std::optional<StageGraph> shared = share_lanes(problem.graph, StageId(i), problem.target);
    if (!shared) continue;
    result = place_rows(std::move(*shared), problem.target);
    if (result.decision && count_windows(result) == 0)
      result.decision = Decision::no("group-lanes", "its epilogue is no window along the lanes");
    break;
  }
  return result;
}

}  // namespace heddle::schedule
