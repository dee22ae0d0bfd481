// The names of the model's nodes that each command computes.
#pragma once

#include <string>
#include <vector>

#include "plan/flow.h"

namespace heddle::plan {

// By node of the flow. A name is listed at every command that has an instruction of it, and for a
// view at the producer of the viewed value. A name of constants only (in a kernel or before the
// run) that is listed nowhere else is at the first command that contains or reads them. A list
// holds at most `most` names that an earlier command also lists, so that the total size stays
// proportional to the numbers of names and commands.
std::vector<std::vector<std::string>> model_nodes(const Flow& flow, size_t most = 64);

}  // namespace heddle::plan
