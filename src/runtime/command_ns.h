// What the commands of a run take beside each other, roughly: with the link of the program's
// target.
#pragma once

#include <vector>

#include "program/program.h"

namespace heddle::runtime {

// program::rough_ns of its commands. Streams are chosen by it, here and when memory is planned.
std::vector<double> command_ns(const program::Program& program);

}  // namespace heddle::runtime
