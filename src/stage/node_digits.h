// The digits of a stage that its body nodes depend on: run-time indices (the row of a gather) move
// with these digits, although no index expression says so.
#pragma once

#include <vector>

#include "stage/stage_graph.h"

namespace heddle::stage {

// [node][digit], digits as in Stage::extents().
using NodeDigits = std::vector<std::vector<bool>>;
NodeDigits node_digits(const Stage& stage);

// Whether the expression has a run-time part that depends on the digit.
bool moves_unseen(const index::Expr& x, int digit, const NodeDigits& nodes);

}  // namespace heddle::stage
