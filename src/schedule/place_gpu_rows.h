// Private to schedule, and stitch: row schedules for a GPU. They are those of place_rows.h with the
// threads of a subgroup, or of a block, as lanes: a task is then a subgroup's (rows up to about two
// thousand elements, held in its registers) or a block's (longer ones, and maps).
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
