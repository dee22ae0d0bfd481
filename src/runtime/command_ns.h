// Rough times of a run's commands relative to each other, for the link of the program's target.
#pragma once

#include <vector>

#include "program/program.h"

namespace heddle::runtime {

// program::rough_ns of the commands. Streams are chosen by it, both here and in memory planning.
std::vector<double> command_ns(const program::Program& program);

}  // namespace heddle::runtime
