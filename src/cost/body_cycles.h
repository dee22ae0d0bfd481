// The cost of a stage's body, by the target's table of cycles.
#pragma once

#include "stage/stage_graph.h"
#include "target/target.h"

namespace heddle::cost {

struct BodyForm {
  int lane_digit = -1;   // the digit of the lanes (a warp's threads); -1: one element at a time
  double recompute = 1;  // evaluations divided by the stage's volume
  int lanes = 0;         // 0: as many as the target has for the widest type
  bool stored = false;   // its values go to memory or scratch
  int width = 1;         // on a GPU: elements per access of a lane
  bool turned = false;   // on a GPU: accesses across the lanes are transposed in scratch
  int64_t strip = 0;     // of the lanes' digit, in a task; 0: all of it
};

// Vector cycles (cycles of a warp) of all evaluations of a stage. A node counts as often as the
// digits that it depends on change: it is computed once for all lanes, or for inner loops, along
// which it does not change. Unused lanes count like the others.
double body_cycles(const stage::Stage& stage, const BodyForm& form, const target::Target& target);

// The most different elements of its source that a load reads: the volume of the digits it uses.
double read_elems(const stage::Stage& stage, const stage::Load& load);

}  // namespace heddle::cost
