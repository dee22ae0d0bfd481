// What the next task (or the next row of a task) reads is fetched while a later sweep over this
// one runs: the sweeps behind the first find their row in the caches, and memory would be idle.
#pragma once

#include "kernel/kernel.h"
#include "target/target.h"

namespace heddle::stitch {

// Adds prefetches to the later sweeps of a group's tasks, for the arrays that an earlier sweep has
// read, where two tasks' share of them fits the second cache.
void fetch_ahead(kernel::Kernel* kernel, kernel::Group* group, const target::Target& target);

}  // namespace heddle::stitch
