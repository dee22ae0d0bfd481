// Which output is written where: directly by the node that makes it, by a copy at the end of the
// commands, or (outputs that are an input, a constant or another output) by a copy after the run.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "plan/flow.h"

namespace heddle::plan {

struct Output {
  StorageId storage;   // its own memory; none: copied from `source` after the run
  int64_t alias = -1;  // input leaf whose memory it is
  Leaf source;
};

// Adds copy nodes to the flow where they are needed, marks the storages that are outputs' memory,
// and adds the edges that let all readers of an input run before it is overwritten. Error: two
// outputs that must alias one input.
Result<std::vector<Output>> place_outputs(const hlo::Module& module, Flow& flow);

}  // namespace heddle::plan
