// Private to fuse: loops of one computation become kernels; those that would take long as one are
// cut, for nothing ends a kernel.
#pragma once

#include <vector>

#include "fuse/groups.h"
#include "fuse/refusal.h"

namespace heddle::fuse {

// Whether a loop could be one kernel, if it pays.
bool may_be_kernel(Instr* loop, const target::Target& target);

// form_loops in one computation. Whether it changed.
bool form_loops_in(Computation* computation, const target::Target& target,
                   std::vector<Refusal>* refusals);

// A while of known trips that would take more than 50 ms as one kernel becomes a loop around
// itself: the inner one makes as many trips as take about 10 ms (a divisor of all of them; where
// there is none between 1 and 100 ms the loop stays whole), and a run is cancelled between them.
// The inner one's condition is that of all trips: run by it instead of by its trips it gives the
// same.
class CutLoops {
 public:
  CutLoops(Computation* computation, const target::Target& target);
  // Where the inner loops are.
  std::vector<Computation*> pieces() const;
  // When loops have become kernels: those whose inner loop has not become whole again. Whether
  // others stay cut.
  bool join_again();

 private:
  struct Cut {
    Instr* outer;
    int64_t trips, piece;
  };
  std::vector<Cut> cut_;
};

}  // namespace heddle::fuse
