// Decides how each output is written: directly by the node that makes it, or by a copy (outputs
// that are an input, a constant, a once result or another output). Such a copy is an ordinary
// command.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "plan/flow.h"

namespace heddle::plan {

struct Output {
  StorageId storage;   // its memory
  int64_t alias = -1;  // input leaf whose memory it uses
};

// Adds copy nodes where needed, marks the storages that use outputs' memory, and adds edges so that
// all readers of an input run before it is overwritten. Error: two outputs that must alias one
// input.
Result<std::vector<Output>> place_outputs(const hlo::Module& module, Flow& flow);

}  // namespace heddle::plan
