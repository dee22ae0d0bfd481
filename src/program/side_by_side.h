// Launches that follow each other and touch nothing that another of them writes: the updates of
// many tensors, say. The executor makes one launch of them, a fork and a join, in which every
// worker has its share of each.
#pragma once

#include <vector>

#include "program/program.h"

namespace heddle::program {

// By command: how many from here on are one launch; 0 for those inside one. Kernels of several
// phases, and whatever is no kernel, stay alone.
std::vector<size_t> side_by_side(const Program& program, const std::vector<Command>& commands);

// How many commands of a run, with those of regions, are inside another one's launch.
int64_t joined_count(const Program& program);

// How often the workers are started by the commands of a run, regions' commands counted once: a
// kernel of several phases once a phase, what has no kernel once.
int64_t launch_count(const Program& program);

}  // namespace heddle::program
