// PlacedFusion: a stage graph with its schedule and where its values live, the result of place().
#pragma once

#include <string_view>
#include <variant>

#include "stage/chain_shape.h"
#include "stage/footprint.h"
#include "stage/schedule.h"
#include "stage/window_shape.h"

namespace heddle::stage {

struct PlacedFusion {
  StageGraph graph;  // after digits were merged and reductions split
  Schedule schedule;
  Placement placement;
  Decision decision = Decision::yes();
  std::string_view strategy;  // the one that made it (schedule/strategies.def)
  // The form of several rows that are matched as a whole: a chain of products (the schedule's first
  // nodes are its products), or a convolution and the pool after it (the first node is the
  // convolution, the second the pool).
  std::variant<std::monostate, Chain, Pooled> form = {};

  const Chain* chain() const { return std::get_if<Chain>(&form); }
  const Pooled* pooled() const { return std::get_if<Pooled>(&form); }
};

// The extent of a stage's digit (its out digits, then its red digits) in one task.
int64_t extent_in_task(const PlacedFusion& placed, StageId stage, int digit);
// Whether the stage accumulates across the iterations of a serial loop around its row: on CPUs its
// accumulators are then in memory.
bool is_swept(const PlacedFusion& placed, size_t stage);
// Whether it was placed, by the GEMM family.
bool is_gemm(const PlacedFusion& placed);
// A chain of products, or a product and rows (chain.h); is_gemm() too.
bool is_chain(const PlacedFusion& placed);
// A convolution with its pool; is_gemm() too.
bool is_pooled(const PlacedFusion& placed);
// Whether it was placed, by any template family.
bool is_template(const PlacedFusion& placed);

}  // namespace heddle::stage
