// What the body of a stage costs, by the target's table of cycles.
#pragma once

#include "stage/stage_graph.h"
#include "target/target.h"

namespace heddle::cost {

struct BodyForm {
  int lane_digit = -1;   // that lanes (a warp's threads) run along; -1: one element at a time
  double recompute = 1;  // evaluations over the stage's own volume
  int lanes = 0;         // 0: as many as the target has for the widest type
  bool stored = false;   // its values go to memory or scratch
  int width = 1;         // of a GPU: elements that an access of a lane moves
  bool turned = false;   // of a GPU: what lies across the lanes goes through scratch in squares
  int64_t strip = 0;     // of the lanes' digit, in a task; 0: all of it
};

// Vector cycles (cycles of a warp) of all evaluations of a stage. A node counts as often as the
// digits that it depends on change: what does not change along the lanes, or in the inner loops, is
// computed once for all. Lanes that are left over count like the others.
double body_cycles(const stage::Stage& stage, const BodyForm& form, const target::Target& target);

// Different elements of its source that a load reads, at most: the volume of the digits it uses.
double read_elems(const stage::Stage& stage, const stage::Load& load);

}  // namespace heddle::cost
