// The names of the model's own nodes that each command does.
#pragma once

#include <string>
#include <vector>

#include "plan/flow.h"

namespace heddle::plan {

// By node of the flow. A name stands at every command that has an instruction of it, at the maker
// of what it is a view of, and, where that was made before the run, at its first reader. A list
// holds at most `most` names that stand at a command before it: together they stay in proportion
// to the names and the commands.
std::vector<std::vector<std::string>> model_nodes(const Flow& flow, size_t most = 64);

}  // namespace heddle::plan
