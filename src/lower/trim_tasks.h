// Private to trim: loops over tasks, shared among the workers by what there is to do (trim.h).
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::lower::trimming {

struct Tasks {
  size_t first = 0;                   // of the group's grid dimensions
  int64_t most = 1;                   // how many numbers their loops have at the bounds
  int64_t wanted = 64;                // enough for some each of the workers
  std::vector<kernel::ExprId> trips;  // of each, in a run; not below 0
};

// Workers have parts of the tasks, one behind the other: each has its share of what there is. The
// loops become one over few tasks; task t of them has numbers ceil(t * there are / tasks) up to the
// next one's. Names that are the same for all numbers stand in the prologue.
void share_tasks(kernel::Kernel* kernel, const Tasks& tasks, kernel::Group* group,
                 std::vector<kernel::Stmt>* prologue);

// Groups that are shared among the same number of tasks become one: a task has its share of each.
void join_tasks(kernel::Kernel* kernel, std::vector<kernel::Group>* groups);

}  // namespace heddle::lower::trimming
