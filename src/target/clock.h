// The clock frequency in which cycles are counted.
#pragma once

namespace heddle::target {

// Frequency in GHz of one busy core of this machine, now: from the time of a chain of dependent
// additions, one per cycle. 0 if it cannot be measured (another architecture).
double measured_clock_ghz();

}  // namespace heddle::target
