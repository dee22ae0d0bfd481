#include "stage/placed.h"

#include <algorithm>

namespace heddle::stage {

namespace {

// The first node of a placed fusion, if it is a row; null: it is not, or was refused.
const Row* first_row(const PlacedFusion& placed) {
  return placed.decision ? std::get_if<Row>(&placed.schedule.nodes.at(0)) : nullptr;
}

}  // namespace

int64_t extent_in_task(const PlacedFusion& placed, StageId stage, int digit) {
  const Stage& of = placed.graph.stage(stage);
  const Placed& place = placed.placement.stages[stage.index()];
  const auto out = static_cast<int>(of.out.size());
  if (digit < out) return place.need[static_cast<size_t>(digit)].extent;
  int64_t extent = of.red[static_cast<size_t>(digit - out)].extent;
  for (int number : place.path)
    for (const Drive& drive :
         std::get<Loop>(placed.schedule.nodes[static_cast<size_t>(number)]).drives)
      if (drive.stage == stage && drive.digit == digit) extent = std::min(extent, drive.by);
  return extent;
}

bool is_swept(const PlacedFusion& placed, size_t stage) {
  const Stage& from = placed.graph.stages[stage];
  for (int number : placed.placement.stages[stage].path) {
    const Loop& loop = std::get<Loop>(placed.schedule.nodes[static_cast<size_t>(number)]);
    if (loop.kind != LoopKind::serial) continue;
    for (const Drive& drive : loop.drives)
      if (drive.stage.index() == stage && drive.digit >= static_cast<int>(from.out.size()))
        return true;
  }
  return false;
}

bool is_gemm(const PlacedFusion& placed) {
  const Row* row = first_row(placed);
  return row && row->gemm();
}

bool is_template(const PlacedFusion& placed) {
  const Row* row = first_row(placed);
  return row && row->is_tile();
}

bool is_chain(const PlacedFusion& placed) { return placed.decision && placed.chain(); }

bool is_pooled(const PlacedFusion& placed) { return placed.decision && placed.pooled(); }

}  // namespace heddle::stage
