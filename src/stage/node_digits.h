// Which digits of a stage its body nodes depend on: places that are known in a run only (the row
// of a gather) move with these, although no index expression says so.
#pragma once

#include <vector>

#include "stage/stage_graph.h"

namespace heddle::stage {

// [node][digit], digits as in Stage::extents().
using NodeDigits = std::vector<std::vector<bool>>;
NodeDigits node_digits(const Stage& stage);

// The expression has a part that is known in a run only and depends on the digit.
bool moves_unseen(const index::Expr& x, int digit, const NodeDigits& nodes);

}  // namespace heddle::stage
