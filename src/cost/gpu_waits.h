// The time that a task of a GPU waits for memory and for its threads: it bounds a kernel whose
// warps are too few to hide it.
#pragma once

#include <vector>

#include "stage/placed.h"
#include "target/target.h"

namespace heddle::cost {

// A row, and how often a task executes it.
struct TaskRow {
  const stage::Row* row = nullptr;
  double rounds = 1;
};

struct GpuTask {
  std::vector<TaskRow> rows;  // in order
  int lanes = 32;
  double tasks = 1;
  double resident = 1;  // tasks at once, on all multiprocessors together
};

struct GpuWaits {
  double ns = 0;           // of one task
  double again_bytes = 0;  // read again from memory by all tasks: no cache held them
};
GpuWaits gpu_waits(const stage::PlacedFusion& placed, const GpuTask& task,
                   const target::Target& target);

}  // namespace heddle::cost
