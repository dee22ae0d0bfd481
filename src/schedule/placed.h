// PlacedFusion: a stage graph with its schedule and where its values live, as place() answers.
#pragma once

#include "schedule/footprint.h"
#include "schedule/schedule.h"

namespace heddle::schedule {

struct PlacedFusion {
  StageGraph graph;  // after digits were merged and reductions split
  Schedule schedule;
  Placement placement;
  Decision decision = Decision::yes();
};

// Placed, by the GEMM family.
bool is_gemm(const PlacedFusion& placed);
// Several products in a row, or a product and rows (chain.h); is_gemm() too. The schedule's first
// nodes are its products.
bool is_chain(const PlacedFusion& placed);
// Placed, by any template family.
bool is_template(const PlacedFusion& placed);

}  // namespace heddle::schedule
