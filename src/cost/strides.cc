#include "cost/strides.h"

#include <algorithm>

#include "stage/epilogue.h"
#include "stage/node_digits.h"
#include "stage/top_k.h"

namespace heddle::cost {

using index::Expr;

namespace {

constexpr int64_t kSmallElems = 4096;

// Whether lanes along `digit` access adjacent elements, or all the same one.
bool is_beside(const Expr& x, int digit) {
  return !x.uses(digit) || (x.factor_of(digit) == 1 && !(x - Expr::digit(digit)).uses(digit));
}

int64_t strided_loads(const stage::StageGraph& graph, const stage::Stage& stage, int lane,
                      int turned) {
  int64_t elems = 0;
  const stage::NodeDigits nodes = stage::node_digits(stage);
  for (size_t i = 0; i < stage.loads.size(); ++i) {
    const stage::Load& load = stage.loads[i];
    if (load.source.input < 0 || static_cast<int>(i) == turned ||
        (is_beside(load.coordinates[0], lane) &&
         !stage::moves_unseen(load.coordinates[0], lane, nodes)))
      continue;
    if (graph.inputs[static_cast<size_t>(load.source.input)].shape.elems() < kSmallElems) continue;
    elems += stage.out_elems() * stage.red_elems();
  }
  return elems;
}

int64_t strided_stores(const stage::Stage& stage, int lane) {
  const bool stored = std::any_of(stage.values.begin(), stage.values.end(),
                                  [](const stage::Value& value) { return value.output >= 0; });
  if (stored && stage.out_elems() >= kSmallElems && lane < static_cast<int>(stage.out.size()) &&
      !is_beside(stage.position, lane))
    return stage.out_elems();
  return 0;
}

}  // namespace

int64_t strided_elems(const stage::PlacedFusion& placed) {
  int64_t elems = 0;
  if (!placed.decision) return elems;
  for (const stage::ScheduleNode& node : placed.schedule.nodes) {
    const stage::Row* row = std::get_if<stage::Row>(&node);
    if (!row || row->gemm() || row->own.empty() || row->own.back().kind != stage::LoopKind::vector)
      continue;
    const stage::Stage& first = placed.graph.stage(row->joined[0]);
    if (is_top_k(first)) continue;
    const stage::Turn* turn = row->turn();
    // A window in words loads whole vectors of words, or one word for a group (schedule/windows.h).
    const bool in_words = row->nest() && row->nest()->mma->is_dot();
    for (size_t m = 0; m < row->joined.size(); ++m) {
      const int lane = row->own.back().digits[m];
      if (lane < 0) continue;
      const stage::Stage& stage = placed.graph.stage(row->joined[m]);
      if (m > 0 || !in_words)
        elems += strided_loads(placed.graph, stage, lane, turn ? turn->load : -1);
      elems += strided_stores(stage, lane);
    }
  }
  return elems;
}

namespace {

int64_t scattered_of(const stage::StageGraph& graph, const stage::Row& row) {
  const stage::GemmShape& shape = row.gemm()->shape;
  std::vector<std::vector<Expr>> digits;
  if (!invert_epilogue(graph, row.joined, &digits)) return 0;
  const stage::Stage& product = graph.stage(row.joined[0]);
  int64_t elems = 0;
  for (stage::StageId id : row.joined) {
    const stage::Stage& stage = graph.stage(id);
    const bool stored = std::any_of(stage.values.begin(), stage.values.end(),
                                    [](const stage::Value& value) { return value.output >= 0; });
    if (!stored) continue;
    const Expr at = substitute(stage.position, digits[id.index()], product.extents());
    if (is_beside(at, shape.n)) continue;
    const bool turned = shape.type == tensor::Type::f32 && stage.values.size() == 1 &&
                        stage.values[0].type == tensor::Type::f32 && shape.m >= 0 &&
                        at.factor_of(shape.m) == 1 && is_beside(at, shape.m);
    const int64_t rest = shape.n_extent % row.gemm()->record.lanes;
    const int64_t columns = !turned ? shape.n_extent : rest >= kLeastTurned ? 0 : rest;
    elems += stage.out_elems() / shape.n_extent * columns;
  }
  return elems;
}

}  // namespace

int64_t scattered_stores(const stage::PlacedFusion& placed) {
  if (!is_gemm(placed)) return 0;
  if (const stage::Chain* chain = placed.chain()) {
    if (chain->links.back().rows) return 0;
    const auto products = std::count_if(chain->links.begin(), chain->links.end(),
                                        [](const stage::Link& link) { return !link.rows; });
    const stage::Row& last =
        std::get<stage::Row>(placed.schedule.nodes[static_cast<size_t>(products) - 1]);
    return scattered_of(placed.graph, last);
  }
  const stage::Row& row = std::get<stage::Row>(placed.schedule.nodes[0]);
  if (std::any_of(row.joined.begin() + 1, row.joined.end(),
                  [&](stage::StageId id) { return placed.graph.stage(id).is_reduction(); }))
    return 0;
  return scattered_of(placed.graph, row);
}

}  // namespace heddle::cost
