// What a program's commands take, over several runs.
#pragma once

#include <cstdint>
#include <vector>

#include "handles.h"

namespace heddle::tools {

struct RunTimes {
  std::vector<std::vector<double>> commands;  // by command: ms in each run, of all its launches
  std::vector<double> runs;                   // ms of each run, from outside
};

// Runs a context whose inputs and outputs are bound. Of the last run the context keeps the profile.
// Error: the run's.
Result<RunTimes> time_runs(heddle_context* context, int64_t runs);

}  // namespace heddle::tools
