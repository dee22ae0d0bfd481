// stitch: a placed schedule becomes a kernel (architecture.md; stages.md). It may not refuse: every
// schedule that place() accepts has a kernel.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "schedule/place.h"
#include "target/target.h"

namespace heddle::stitch {

// The kernel's global buffers are flat: the fusion's inputs, its outputs, then workspaces for
// values that cross a phase.
struct Stitched {
  kernel::Kernel kernel;
  std::vector<int64_t> workspace_bytes;
  // Output i may overwrite input in_place[i] (each element is read before it is written, by the
  // task that writes it); -1: no such input.
  std::vector<int> in_place;
  // Output i is input in_place[i] except for a part, and only this part is stored: the output must
  // share the input's memory. Missing entries: false.
  std::vector<bool> in_part;
  // By output, if there is a choice: all inputs that it may overwrite. Each serves one output only.
  std::vector<std::vector<int>> may_overwrite;
  int64_t flops = 0, min_bytes = 0;  // of one launch
  // By phase and group: plain loop nests, which lower/ may rearrange (lower/passes.h).
  std::vector<std::vector<bool>> nests;
  // By phase, if there are several: operations, and the most bytes that it touches.
  std::vector<int64_t> phase_flops, phase_bytes;
};

// Whether some output may overwrite an input.
bool may_overwrite(const Stitched& stitched);
// The inputs that an output may overwrite, the chosen one first.
std::vector<int> overwritable(const Stitched& stitched, size_t output);

// The kernel follows the schedule; lower/ completes it (a GPU's threads are still vector lanes).
// `streamed`: outputs (by leaf) that are too large for the caches and not read soon; they are
// stored past the caches. Their memory is 64-byte aligned.
Stitched stitch(const stage::PlacedFusion& placed, const std::string& name,
                const target::Target& target, const std::vector<bool>& streamed = {});

// The kernel of a loop fusion (hlo/loop_trips.h), built from those of the fusions in its bodies:
// one group per loop, with one task, or one per strip.
using KernelOf = std::function<const Stitched&(const hlo::Instr* fusion)>;
Stitched stitch_loop(const hlo::Computation& computation, const std::string& name,
                     const target::Target& target, const KernelOf& kernel_of);

}  // namespace heddle::stitch
