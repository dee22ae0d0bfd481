#include "stage/placed.h"

namespace heddle::stage {

namespace {

// The row that stands first, of a fusion that could be placed.
const Row* first_row(const PlacedFusion& placed) {
  return placed.decision ? std::get_if<Row>(&placed.schedule.nodes.at(0)) : nullptr;
}

}  // namespace

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
