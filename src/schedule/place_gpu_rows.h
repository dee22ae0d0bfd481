// Private to schedule and stitch: row schedules for a GPU, as in place_rows.h and phases.h but with
// the threads of a subgroup or of a block as lanes. cost::latency chooses the number of threads,
// elements per access and rows per task, whether values are kept or recomputed, and whether a
// dimension is split into strips and launches.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// The target as row schedules see it: `lanes` lanes, one core per multiprocessor, and a task's part
// of the shared memory as its cache.
target::Target view_of_threads(const target::Target& target, int lanes);

// The schedule with loop kinds of a CPU, which stitch's rows read: parallel for block and subgroup,
// vector for thread.
Schedule without_threads(const Schedule& schedule);

}  // namespace heddle::schedule
