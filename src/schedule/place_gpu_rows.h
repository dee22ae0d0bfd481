// Private to schedule, and stitch: row schedules for a GPU. They are those of place_rows.h and
// phases.h with the threads of a subgroup, or of a block, as lanes. How many threads, elements of an
// access and rows of a task, whether values are kept or computed again, and whether a dimension goes
// by strips and launches, is chosen by cost::latency.
#pragma once

#include "schedule/stage_names.h"

namespace heddle::schedule {

// The target as row schedules see it: as many lanes, one core a multiprocessor, and a task's part
// of the shared memory as its cache.
target::Target view_of_threads(const target::Target& target, int lanes);

// The loops of a schedule in the words of a CPU, which stitch's rows read: parallel for block and
// subgroup, vector for thread.
Schedule without_threads(const Schedule& schedule);

}  // namespace heddle::schedule
