// Footprint inference: the one legality test (stages.md §3). From the outputs inwards it finds what
// each stage must compute at its place, how often anything is recomputed, and where its values
// live; or says, with a code, why the schedule is not legal.
#pragma once

#include <string>
#include <vector>

#include "base/decision.h"
#include "index/map.h"
#include "stage/schedule.h"
#include "target/target.h"

namespace heddle::stage {

// The result for one stage. Offsets are in loop variables: variable i is node i of the schedule
// (rows have extent 1).
struct Placed {
  int phase = 0;
  std::vector<int> path;     // loops around its row, outermost first (node numbers)
  int row = -1;              // node number
  index::Region need;        // per out digit, at its place
  Space space = Space::reg;  // of the value, for readers in this kernel
  double recompute = 1;      // ρ: evaluations divided by the stage's volume
  int64_t bytes = 0;         // of the value at its home (scratch: the reserved size)
  // Trips of the innermost serial loops that fill the value: it is read after them, and its home is
  // outside of them. 1: its home is its step.
  int64_t filled = 1;
  std::vector<std::string> widened;  // digits that did not line up
};

struct Placement {
  std::vector<Placed> stages;    // by StageId
  std::vector<int64_t> extents;  // of loop variables
  // Per task. On a CPU, values with disjoint live ranges share bytes (lower's share_scratch).
  int64_t scratch_bytes = 0;
  Decision decision = Decision::yes();
};

// The scratch available to one task: half of the second cache.
int64_t scratch_limit(const target::Target& target);

// Codes: `other-block` (a reader in another task of the same phase), `runtime-index`, `space-full`,
// `not-joined`, `order` (a reader precedes its producer), `missing` (a stage has no place, or no
// reader).
Placement place_values(const StageGraph& graph, const Schedule& schedule,
                       const target::Target& target);

// True if `reader` reads `stage` (a joined row's earlier member) only at the current iteration of
// the row's loops, and none of these drives a reduction digit of `stage`.
bool reads_current_point(const StageGraph& graph, const Row& row, size_t reader, size_t stage);

// Text for explain: every stage with its place, need, ρ, space and bytes.
std::string describe(const StageGraph& graph, const Schedule& schedule, const Placement& placement);

}  // namespace heddle::stage
