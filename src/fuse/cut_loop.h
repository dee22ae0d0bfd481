// Private to fuse: loops that would be one kernel for long are cut, for nothing ends a kernel.
#pragma once

#include <functional>

#include "hlo/module.h"

namespace heddle::fuse {

// A while of known trips that would take more than 50 ms as one kernel becomes a loop around
// itself: the inner one makes as many trips as take about 10 ms (a divisor of all of them; where
// there is none between 1 and 100 ms the loop stays whole), and a run is cancelled between them.
// The inner one's condition is that of all trips: run by it instead of by its trips it gives the
// same. `step_ns`: what a step takes as part of one kernel; 0: it is none.
bool cut_long_loops(hlo::Module* module, const std::function<double(hlo::Instr*)>& step_ns);

}  // namespace heddle::fuse
