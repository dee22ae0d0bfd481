// The clock that cycles are counted with.
#pragma once

namespace heddle::target {

// Of one core of this machine at work now, in GHz: a chain of additions, one a cycle, by the time
// it takes. 0 where that cannot be told (another architecture).
double measured_clock_ghz();

}  // namespace heddle::target
