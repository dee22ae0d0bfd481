// The names of the model's own nodes that each command does.
#pragma once

#include <string>
#include <vector>

#include "plan/flow.h"

namespace heddle::plan {

// By node of the flow. A name stands at every command that has an instruction of it and at the
// maker of what it is a view of; where it is of constants alone, in a kernel or before the run, and
// at no other command, at the first that has or reads them. A list holds at most `most` names that
// stand at a command before it: together they stay in proportion to the names and the commands.
std::vector<std::vector<std::string>> model_nodes(const Flow& flow, size_t most = 64);

}  // namespace heddle::plan
