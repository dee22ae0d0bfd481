// Private to fuse: turns loops of one computation into kernels; loops that would run long as one
// kernel are cut, because a running kernel cannot be cancelled.
#pragma once

#include <vector>

#include "fuse/groups.h"
#include "fuse/refusal.h"

namespace heddle::fuse {

// Whether a loop could be one kernel, if it pays.
bool may_be_kernel(Instr* loop, const target::Target& target);

// form_loops for one computation. Returns whether it changed.
bool form_loops_in(Computation* computation, const target::Target& target,
                   std::vector<Refusal>* refusals);

// A while of known trip count that would take more than 50 ms as one kernel becomes two nested
// loops: the inner one makes trips for about 10 ms (a divisor of the trip count; if none gives
// between 1 and 100 ms the loop stays whole), and a run is cancelled between them. The inner loop
// keeps the condition of the whole loop: run by that condition instead of its trip count, it gives
// the same.
class CutLoops {
 public:
  CutLoops(Computation* computation, const target::Target& target);
  // The computations that contain the inner loops.
  std::vector<Computation*> pieces() const;
  // Call it when loops have become kernels: makes loops whole again whose inner loop has not become
  // one. Returns whether others stay cut.
  bool join_again();

 private:
  struct Cut {
    Instr* outer;
    int64_t trips, piece;
  };
  std::vector<Cut> cut_;
};

}  // namespace heddle::fuse
