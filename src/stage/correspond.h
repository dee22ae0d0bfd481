// Corresponding digits: which digit of every stage moves along with one digit of the anchor.
#pragma once

#include <vector>

#include "stage/stage_graph.h"

namespace heddle::stage {

// By StageId: the out digit that equals digit `digit` of stage `anchor` wherever one reads the
// other (through any number of stages, in either direction), or -1.
std::vector<int> corresponding_digits(const StageGraph& graph, size_t anchor, int digit);
// The digit (out or reduced) of every stage that moves along with digit `digit` of stage `from`:
// where one reads the other, or both read an input, at the same place. -1: none.
std::vector<int> moves_along(const StageGraph& graph, size_t from, int digit);

}  // namespace heddle::stage
