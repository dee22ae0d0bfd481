// Consecutive launches that touch nothing that another of them writes, such as the updates of many
// tensors. The executor merges them into one launch, a single fork and join, in which every worker
// gets a share of each (horizontal fusion at run time).
#pragma once

#include <vector>

#include "program/program.h"

namespace heddle::program {

// By command: the number of commands, from this one on, in one launch; 0 inside such a group.
// Kernels of several phases, and commands that are not launches, are not merged.
std::vector<size_t> side_by_side(const Program& program, const std::vector<Command>& commands);

// Number of commands of a run, including those of regions, that are merged into another one's
// launch.
int64_t joined_count(const Program& program);

// How often the commands of a run start the workers, counting commands of regions once: a kernel
// once per phase, any other command once.
int64_t launch_count(const Program& program);

}  // namespace heddle::program
