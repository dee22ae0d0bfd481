// The commands of a program as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "program/program.h"

namespace heddle::tools {

// [{"name": of the instruction, "operators", "kernel", "label", "nodes": names of the model's own
// nodes that it does}], those of a run in order, commands of loops and branches after their own.
// `kernel` and `label` only of launches.
nlohmann::ordered_json commands_json(const program::Program& program);

}  // namespace heddle::tools
