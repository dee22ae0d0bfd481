// A while that counts to a constant gets its trip count as a fact (hlo/loop_trips.h): fusion makes
// kernels of loops with known trips, and plans run them without evaluating the condition.
#include "hlo/loop_trips.h"
#include "opt/counted_loop.h"
#include "opt/passes.h"

namespace heddle::opt {

Result<bool> count_trips(hlo::Module& module, const PassContext&) {
  bool changed = false;
  for (const auto& computation : module.computations())
    for (hlo::Instr* instr : computation->instrs()) {
      if (!instr->is(hlo::Opcode::while_)) continue;
      const auto trips = trip_count(instr, kMostCountedTrips);
      if (!trips || hlo::known_trips(instr) == trips) continue;
      hlo::set_trips(instr, *trips);
      changed = true;
    }
  return changed;
}

}  // namespace heddle::opt
