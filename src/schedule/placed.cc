#include "schedule/placed.h"

namespace heddle::schedule {

bool is_chain(const PlacedFusion& placed) {
  if (!is_gemm(placed)) return false;
  size_t products = 0;
  bool rows = false;  // of a block: in a loop of their own
  for (const ScheduleNode& node : placed.schedule.nodes) {
    const Row* row = std::get_if<Row>(&node);
    products += row && row->gemm;
    rows |= !row && std::get<Loop>(node).kind == LoopKind::serial;
  }
  return products > 1 || rows;
}

bool is_template(const PlacedFusion& placed) {
  if (!placed.decision) return false;
  const Row* row = std::get_if<Row>(&placed.schedule.nodes.at(0));
  return row && (row->gemm || row->winograd);
}

bool is_gemm(const PlacedFusion& placed) {
  if (!placed.decision) return false;
  const Row* row = std::get_if<Row>(&placed.schedule.nodes.at(0));
  return row && row->gemm;
}

}  // namespace heddle::schedule
