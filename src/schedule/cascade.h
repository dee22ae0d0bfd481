// Reductions that hang on another one of the same row: the sum of exp(x - max x), of softmax and
// log-sum-exp. Where a row is longer than the second cache keeps, it goes by strips: the maximum of
// a strip and its sum by that, while the strip is near; behind the strips m = max m_p and
// sum = sum_p sum_p exp(m_p - m). So a row is read from memory once.
#pragma once

#include <vector>

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// The graph with such reductions by strips. `striped`: the stages that have the strip as their out
// digit 0 and stand in a loop over it; empty where the graph is as it was. Only exponentials that
// are fast already (mark_fast_forms) are touched: the sums run in another order, each summand is
// rounded once more, and a named rewrite says so.
struct Cascade {
  StageGraph graph;
  std::vector<StageId> striped;
};
Cascade stripe_cascades(const StageGraph& graph, const target::Target& target);

}  // namespace heddle::schedule
