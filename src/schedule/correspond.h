// Private to schedule: which digit of every stage moves along with one digit of the anchor.
#pragma once

#include <vector>

#include "schedule/stage_graph.h"

namespace heddle::schedule {

// By StageId: the out digit that equals digit `digit` of stage `anchor` wherever one reads the
// other (through any number of stages, in either direction), or -1.
std::vector<int> corresponding_digits(const StageGraph& graph, size_t anchor, int digit);

}  // namespace heddle::schedule
