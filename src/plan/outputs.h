// Which output is written where: directly by the node that makes it, or by a copy (outputs that are
// an input, a constant, a once result or another output). Such a copy is a command like others.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "plan/flow.h"

namespace heddle::plan {

struct Output {
  StorageId storage;   // its own memory
  int64_t alias = -1;  // input leaf whose memory it is
};

// Adds copy nodes to the flow where they are needed, marks the storages that are outputs' memory,
// and adds the edges that let all readers of an input run before it is overwritten. Error: two
// outputs that must alias one input.
Result<std::vector<Output>> place_outputs(const hlo::Module& module, Flow& flow);

}  // namespace heddle::plan
